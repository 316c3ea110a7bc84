//! Proven results: who can force what, and how soon.
//!
//! A node whose moves include one into a lost position is won; one whose moves all lead into won
//! positions is lost (MCTS-solver: Winands, Björnsson and Saito, *Monte-Carlo Tree Search Solver*,
//! 2008). Draws by the rules count as proven, as a tree, unlike a graph, knows the whole game
//! before each node. A repetition within the search does not: it is a good guess, as the players
//! might do otherwise the second time. Nor does what endgame tables say: they do not know how soon
//! the mate is.

use super::{Edge, NodeId, NodeKind, Tree};
use crate::evaluator::Wdl;

/// What is proven of a position, for its mover.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Proof {
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
    pub(crate) const fn by_rule(kind: NodeKind) -> Self {
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
    pub(crate) const fn value(self) -> Option<Wdl> {
        match self {
            Self::Open => None,
            Self::Won(_) => Some(Wdl::WIN),
            Self::Drawn => Some(Wdl::DRAW),
            Self::Lost(_) => Some(Wdl::LOSS),
        }
    }
}

impl Tree {
    /// What is proven of the position after a move; nothing if it was never visited.
    pub(crate) fn proof_after(&self, edge: &Edge) -> Proof {
        edge.child()
            .map_or(Proof::Open, |child| self.node(child).proof)
    }

    /// Whether the opponent can force mate after a move.
    pub(crate) fn is_refuted(&self, edge: &Edge) -> bool {
        matches!(self.proof_after(edge), Proof::Won(_))
    }

    /// What follows for a node from its moves; only those for which `counts` holds are played.
    pub(crate) fn prove(&self, id: NodeId, counts: impl Fn(&Edge) -> bool) -> Proof {
        let (mut all, mut drawn) = (true, false);
        let (mut fastest, mut slowest): (Option<u16>, Option<u16>) = (None, None);
        for edge in self.edges(id).iter().filter(|edge| counts(edge)) {
            match self.proof_after(edge) {
                Proof::Open => all = false,
                Proof::Drawn => drawn = true,
                Proof::Lost(plies) => fastest = Some(fastest.map_or(plies, |f| f.min(plies))),
                Proof::Won(plies) => slowest = Some(slowest.map_or(plies, |s| s.max(plies))),
            }
        }
        match (fastest, slowest) {
            (Some(plies), _) => Proof::Won(plies.saturating_add(1)),
            _ if !all => Proof::Open,
            _ if drawn => Proof::Drawn,
            (None, Some(plies)) => Proof::Lost(plies.saturating_add(1)),
            (None, None) => Proof::Open,
        }
    }
}
