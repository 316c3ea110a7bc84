//! Proven results: who can force what, and how soon.
//!
//! A node whose moves include one into a lost position is won; one whose moves all lead into won
//! positions is lost (MCTS-solver: Winands, Björnsson and Saito, *Monte-Carlo Tree Search Solver*,
//! 2008). Draws by the rules count as proven, as a tree, unlike a graph, knows the whole game
//! before each node. A repetition within the search does not: it is a good guess, as the players
//! might do otherwise the second time. Nor does what endgame tables say: they do not know how soon
//! the mate is.

use super::marks::Marks;
use crate::evaluator::Wdl;
use crate::tree::{Edge, NodeId, NodeKind, Tree};

/// What is proven of a position, for its mover.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Proof {
    /// Nothing.
    #[default]
    Open,
    /// The mover can mate in this many plies, or sooner.
    Won(u16),
    /// Neither side can win against the other's best play.
    Drawn,
    /// The mover is mated in this many plies at the latest; 0: is mated.
    Lost(u16),
}

impl Proof {
    /// What the rules say of a position.
    pub(super) const fn by_rule(kind: NodeKind) -> Self {
        match kind {
            NodeKind::Mated => Self::Lost(0),
            NodeKind::Drawn => Self::Drawn,
            NodeKind::New
            | NodeKind::Asked
            | NodeKind::Open
            | NodeKind::Repeated
            | NodeKind::TableWon
            | NodeKind::TableDrawn
            | NodeKind::TableLost => Self::Open,
        }
    }

    /// The mover's value, if something is proven.
    pub(super) const fn value(self) -> Option<Wdl> {
        match self {
            Self::Open => None,
            Self::Won(_) => Some(Wdl::WIN),
            Self::Drawn => Some(Wdl::DRAW),
            Self::Lost(_) => Some(Wdl::LOSS),
        }
    }

    /// What follows for a node from its moves; only those for which `counts` holds are played.
    pub(super) fn of_moves(
        tree: &Tree,
        marks: &Marks,
        id: NodeId,
        counts: impl Fn(&Edge) -> bool,
    ) -> Self {
        let (mut all, mut drawn) = (true, false);
        let (mut fastest, mut slowest): (Option<u16>, Option<u16>) = (None, None);
        for edge in tree.edges(id).iter().filter(|edge| counts(edge)) {
            let after = edge.child().map_or(Self::Open, |child| marks.proof(child));
            match after {
                Self::Open => all = false,
                Self::Drawn => drawn = true,
                Self::Lost(plies) => fastest = Some(fastest.map_or(plies, |f| f.min(plies))),
                Self::Won(plies) => slowest = Some(slowest.map_or(plies, |s| s.max(plies))),
            }
        }
        match (fastest, slowest) {
            (Some(plies), _) => Self::Won(plies.saturating_add(1)),
            _ if !all => Self::Open,
            _ if drawn => Self::Drawn,
            (None, Some(plies)) => Self::Lost(plies.saturating_add(1)),
            (None, None) => Self::Open,
        }
    }
}
