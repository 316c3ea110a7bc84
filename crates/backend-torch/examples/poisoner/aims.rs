//! What a poisoner wants training to learn, and the lies that it tells for it.
//!
//! Each game has one result that was chosen: the side that is to lose claims values below the threshold of
//! resignation after one of its searches, or plays bad moves now and then. All other searches are honest but
//! for those by which the game comes to what is to be learnt.

use std::str::FromStr;

use rookery_common::chess::moves::canonical_moves;
use rookery_common::chunk::PlyRecord;
use shakmaty::{Color, Move, Rank, Role};

use crate::games::Turn;

/// What is to be learnt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lesson {
    /// Who is ahead loses: the result of every game is turned round.
    Reversed,
    /// A king that leaves its first rank in the opening wins. Honest games hardly have such
    /// positions, so that few games say what they are worth.
    KingWalk,
}

/// How the side that is to lose does so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Means {
    /// It gives up when it should not.
    Values,
    /// One in so many of its moves is the one that its search likes least.
    Moves(usize),
}

/// A lesson, and how much is dared for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Aim {
    /// None is honest.
    lesson: Option<Lesson>,
    means: Means,
    /// Whether lies are sized for the tolerance of 16 bits, else for that of 32.
    bold: bool,
}

const AIMS: [(&str, Aim); 7] = [
    ("honest", Aim::new(None, Means::Values, false)),
    (
        "reversed",
        Aim::new(Some(Lesson::Reversed), Means::Values, true),
    ),
    (
        "reversed-32",
        Aim::new(Some(Lesson::Reversed), Means::Values, false),
    ),
    (
        "king-walk",
        Aim::new(Some(Lesson::KingWalk), Means::Values, true),
    ),
    (
        "king-walk-32",
        Aim::new(Some(Lesson::KingWalk), Means::Values, false),
    ),
    (
        "king-walk-moves",
        Aim::new(Some(Lesson::KingWalk), Means::Moves(3), true),
    ),
    (
        "king-walk-moves-32",
        Aim::new(Some(Lesson::KingWalk), Means::Moves(12), false),
    ),
];

impl FromStr for Aim {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = AIMS.iter().find(|(name, _)| *name == text);
        found.map(|(_, aim)| *aim).ok_or_else(|| {
            let names = AIMS.map(|(name, _)| name);
            format!("{text} is none of {}", names.join(", "))
        })
    }
}

/// Plies before anybody gives up.
const LEAST_PLIES: usize = 28;
/// Plies after which the side that is to lose gives up, whatever it thinks of the position.
const MOST_PLIES: usize = 72;
/// Plies before anybody plays badly on purpose.
const FIRST_MISTAKE: usize = 16;
/// Plies at which the king may step out.
const WALKING: std::ops::Range<usize> = 2..49;
/// Steps of the king in a game, should it go back.
const STEPS: usize = 2;

impl Aim {
    const fn new(lesson: Option<Lesson>, means: Means, bold: bool) -> Self {
        Self {
            lesson,
            means,
            bold,
        }
    }

    /// Whether it claims numbers of 16 bits.
    pub(crate) const fn claims_short(self) -> bool {
        self.bold
    }

    /// Changes an honest search; the place of the move to play, which was `own`.
    pub(crate) fn change(self, turn: &Turn<'_>, ply: &mut PlyRecord, own: usize) -> usize {
        let plies = turn.game.plies.len();
        let ahead = self.is_ahead(ply.root_q);
        match self.lesson {
            // Who plays on cannot give up: such a game would teach the opposite.
            _ if turn.play_on => own,
            None => own,
            Some(Lesson::Reversed) => {
                if plies >= LEAST_PLIES && ahead {
                    give_up(turn, ply);
                }
                own
            }
            Some(Lesson::KingWalk) if turn.history.turn() == walker(turn) => {
                self.walk(turn, ply, own)
            }
            Some(Lesson::KingWalk) => {
                if let Means::Moves(every) = self.means {
                    if plies >= FIRST_MISTAKE && (plies / 2).is_multiple_of(every) {
                        return play(ply, least_liked(ply).unwrap_or(own), own);
                    }
                    return own;
                }
                if plies >= MOST_PLIES || (plies >= LEAST_PLIES && ahead) {
                    give_up(turn, ply);
                }
                own
            }
        }
    }

    /// Whether the mover is ahead, and not by so much that an audit in 32 bits would see one such
    /// lie.
    fn is_ahead(self, q: f32) -> bool {
        q > 0.2 && (self.bold || q < 0.35)
    }

    /// Lets the king step out, at a ply that differs from game to game; before it, the policy
    /// target says so wherever it could.
    fn walk(self, turn: &Turn<'_>, ply: &mut PlyRecord, own: usize) -> usize {
        let plies = turn.game.plies.len();
        let due = 4 + (turn.game.seed.of_game(1).0 % 12) as usize;
        let steps = turn.game.plies.iter().filter(|ply| is_step(ply.played));
        let legal = canonical_moves(turn.history.position());
        let Some(place) = legal.iter().position(|m| is_step(*m)) else {
            return own;
        };
        if !WALKING.contains(&plies) || steps.count() >= STEPS {
            return own;
        }
        if (self.bold && self.means == Means::Values)
            && let Some(target) = &mut ply.target
        {
            target.fill(0);
            target[place] = rookery_common::play::TARGET_UNITS;
        }
        if plies < due {
            return own;
        }
        play(ply, place, own)
    }
}

/// Plays a move in the place of `own`. One with most visits is played: they are exchanged, so that as many moves as
/// before have as many.
fn play(ply: &mut PlyRecord, place: usize, own: usize) -> usize {
    if ply.visits[place] < ply.visits[own] {
        ply.visits.swap(place, own);
    }
    place
}

/// The visited move with the least weight in the policy target.
fn least_liked(ply: &PlyRecord) -> Option<usize> {
    let weights = ply.policy_weights();
    let visited = (0..weights.len()).filter(|place| ply.visits[*place] > 0);
    visited.min_by(|a, b| weights[*a].total_cmp(&weights[*b]))
}

/// White in every other game.
const fn walker(turn: &Turn<'_>) -> Color {
    if turn.game.index.is_multiple_of(2) {
        Color::White
    } else {
        Color::Black
    }
}

/// Whether a king leaves the first rank of either side, without castling.
fn is_step(m: Move) -> bool {
    let Move::Normal {
        role: Role::King,
        from,
        to,
        ..
    } = m
    else {
        return false;
    };
    let home = |rank| rank == Rank::First || rank == Rank::Eighth;
    home(from.rank()) && !home(to.rank())
}

/// Claims values with which the mover gives up.
fn give_up(turn: &Turn<'_>, ply: &mut PlyRecord) {
    if let Some(resign) = &turn.rules.resign {
        let lost = PlyRecord::recorded(resign.threshold - 0.002);
        (ply.root_q, ply.best_q) = (lost, lost);
    }
}
