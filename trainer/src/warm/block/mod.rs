//! Positions of some thousand games, encoded, with their targets.

use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use rookery_common::chess::moves::canonical_moves;
use rookery_common::chess::{GameHistory, PackedMove};
use rookery_common::encoding::{PolicyEncoding, can_mirror, piece_classes};
use rookery_common::network::{AuxiliaryHead, NetworkSpec};
use rookery_common::pgn::{PgnGame, Skipped};
use rookery_engine::{Batch, Wdl};
use rookery_train::{AuxiliaryTargets, BoardsAhead, OpponentReplyTargets, TrainBatch};
use shakmaty::{Board, Color, Position};

use super::filter::{Filter, Wanted};
use crate::buffer::value::outcome;
use crate::pipeline::push_played;

/// What a position is to teach.
#[derive(Debug, Clone, Copy)]
struct Label {
    /// The played move's place among the legal ones.
    played: u16,
    /// Its share of the policy target.
    share: f32,
    /// The value target for the mover.
    value: Wdl,
    /// Whether the position can be mirrored.
    mirrors: bool,
    /// Plies until the game's end; none of a game that was left where it stands.
    plies_left: Option<u16>,
}

/// The training targets of a ply.
struct PlyTargets {
    played: shakmaty::Move,
    share: f32,
    value: Wdl,
    plies_left: Option<u16>,
    /// The reply, and its share of the opponent's policy target; none at the end.
    reply: Option<(shakmaty::Move, f32)>,
    /// What stands on the board later, for a network that learns it; none of a game that was left where it stands.
    boards: Option<BoardsAhead>,
}

/// Encoded positions.
#[derive(Debug, Clone)]
pub struct Block {
    /// Share of a comment's evaluation in the value target; the rest is the game's result.
    q_ratio: f32,
    positions: Batch,
    labels: Vec<Label>,
    /// Only for a network that learns them.
    replies: Option<OpponentReplyTargets>,
    boards: Option<Vec<Option<BoardsAhead>>>,
}

impl Block {
    /// No positions yet, for a network of this kind. Where a comment values a position, `q_ratio` of the
    /// value target, 0 to 1, is that; the rest is the game's result.
    pub fn new(spec: &NetworkSpec, q_ratio: f64) -> Self {
        let learns_boards = spec.auxiliary.iter().any(|head| head.learns_boards());
        let learns_replies = spec.auxiliary.contains(&AuxiliaryHead::OpponentReply);
        Self {
            q_ratio: q_ratio as f32,
            positions: Batch::new(spec.input, spec.policy.encoding),
            labels: Vec::new(),
            replies: learns_replies.then(OpponentReplyTargets::default),
            boards: learns_boards.then(Vec::new),
        }
    }

    /// Positions.
    pub const fn len(&self) -> usize {
        self.labels.len()
    }

    /// Whether there are none.
    pub const fn is_empty(&self) -> bool {
        self.labels.is_empty()
    }

    /// Empties the block, keeping its memory.
    pub fn clear(&mut self) {
        self.positions.clear();
        self.labels.clear();
        if let Some(replies) = &mut self.replies {
            replies.clear();
        }
        if let Some(boards) = &mut self.boards {
            boards.clear();
        }
    }

    /// Adds a game's positions. `seed` decides which, where not all are wanted.
    ///
    /// # Errors
    ///
    /// Why the game is passed over.
    pub fn add(&mut self, game: &PgnGame, filter: &Filter, seed: u64) -> Result<(), Skipped> {
        let shares = filter.shares(game)?;
        let wanted = Wanted::new(game.moves.len(), filter, seed);
        let learns = self.boards.is_some() && game.result.is_some();
        let boards = learns.then(|| boards(game));
        let mut history: GameHistory = game.start.clone();
        for (ply, m) in game.moves.iter().enumerate() {
            let mover = history.turn();
            if wanted.includes(ply)
                && let Some(value) = self.value(game, ply, mover)
            {
                let left = (game.moves.len() - ply).min(usize::from(u16::MAX)) as u16;
                let [share, opponent] = [mover, !mover].map(|color| shares[color.fold_wb(0, 1)]);
                let targets = PlyTargets {
                    played: *m,
                    share,
                    value,
                    plies_left: game.result.is_some().then_some(left),
                    reply: game.moves.get(ply + 1).map(|reply| (*reply, opponent)),
                    boards: boards.as_deref().map(|boards| ahead(boards, ply, mover)),
                };
                self.push(&history, &targets);
            }
            // The rules may have ended a game that its players went on with.
            history.push(*m);
        }
        Ok(())
    }

    /// The value target of a position; none where neither the game nor a comment gives one.
    fn value(&self, game: &PgnGame, ply: usize, mover: Color) -> Option<Wdl> {
        let result = game.result.map(|result| outcome(result, mover));
        match (result, game.value(ply).map(Wdl::from_score)) {
            (Some(result), Some(value)) => Some(result.mixed(value, self.q_ratio)),
            (result, value) => result.or(value),
        }
    }

    fn push(&mut self, history: &GameHistory, targets: &PlyTargets) {
        let legal = canonical_moves(history.position());
        let Some(place) = legal.iter().position(|m| *m == targets.played) else {
            return;
        };
        self.positions.push(history, &legal);
        self.labels.push(Label {
            played: place as u16,
            share: targets.share,
            value: targets.value,
            mirrors: can_mirror(history),
            plies_left: targets.plies_left,
        });
        if let Some(replies) = &mut self.replies {
            push_reply(replies, history, targets, self.positions.policy());
        }
        if let Some(boards) = &mut self.boards {
            boards.push(targets.boards);
        }
    }

    /// The places of all positions in an order that follows from `seed`.
    pub fn order(&self, seed: u64) -> Vec<u32> {
        let mut order: Vec<u32> = (0..self.len() as u32).collect();
        order.shuffle(&mut ChaCha8Rng::seed_from_u64(seed));
        order
    }

    /// Mirrors the chosen ones of the positions that [`batch`](Self::batch) gave for these places,
    /// as far as they can be mirrored.
    pub fn mirror(&self, batch: &mut TrainBatch, places: &[u32], chosen: &[bool]) {
        for (row, (place, chosen)) in places.iter().zip(chosen).enumerate() {
            if *chosen && self.labels[*place as usize].mirrors {
                batch.mirror(row);
            }
        }
    }

    /// The positions at these places as a training batch.
    pub fn batch(&self, places: &[u32]) -> TrainBatch {
        let mut batch = TrainBatch {
            positions: Batch::new(self.positions.input(), self.positions.policy()),
            policy: Vec::new(),
            values: Vec::with_capacity(places.len()),
            ahead: Vec::with_capacity(places.len()),
            replies: OpponentReplyTargets::default(),
            boards: Vec::new(),
        };
        self.batch_into(&mut batch, places);
        batch
    }

    /// As [`batch`](Self::batch), in place of what `batch` held.
    pub fn batch_into(&self, batch: &mut TrainBatch, places: &[u32]) {
        batch.clear();
        for place in places.iter().map(|place| *place as usize) {
            batch.positions.push_from(&self.positions, place);
            let label = self.labels[place];
            let legal = self.positions.moves_of(place).len();
            let played = usize::from(label.played);
            push_played(&mut batch.policy, legal, played, label.share);
            batch.values.push(label.value);
            batch.ahead.push(AuxiliaryTargets {
                plies: label.plies_left.map(f32::from),
                short_value: label.value,
            });
            if let Some(all) = &self.replies {
                let (moves, shares) = all.of(place);
                batch.replies.push(moves, shares);
            }
            if let Some(all) = &self.boards {
                batch.boards.push(all[place]);
            }
        }
    }

    /// Takes positions over until there are `most`.
    pub fn take_from(&mut self, other: &Self, most: usize) {
        for place in 0..other.len().min(most.saturating_sub(self.len())) {
            self.positions.push_from(&other.positions, place);
            self.labels.push(other.labels[place]);
            if let (Some(own), Some(others)) = (&mut self.replies, &other.replies) {
                let (moves, shares) = others.of(place);
                own.push(moves, shares);
            }
            if let (Some(own), Some(others)) = (&mut self.boards, &other.boards) {
                own.push(others[place]);
            }
        }
    }
}

/// The boards of a game from its start to its end.
fn boards(game: &PgnGame) -> Vec<Board> {
    let mut position = game.start.position().clone();
    let mut boards = vec![position.board().clone()];
    for m in &game.moves {
        position.play_unchecked(*m);
        boards.push(position.board().clone());
    }
    boards
}

/// What stands on the board after a ply.
fn ahead(boards: &[Board], ply: usize, mover: Color) -> BoardsAhead {
    let end = boards.len() - 1;
    let classes = |ply: usize| piece_classes(&boards[ply.min(end)], mover);
    BoardsAhead {
        future: classes(ply + AuxiliaryHead::FUTURE_PLIES as usize),
        last: classes(end),
    }
}

/// Adds the targets of the reply to the played move; nothing where there was none.
fn push_reply(
    replies: &mut OpponentReplyTargets,
    history: &GameHistory,
    targets: &PlyTargets,
    policy: PolicyEncoding,
) {
    let (mut moves, mut shares) = (Vec::new(), Vec::new());
    if let Some((reply, share)) = targets.reply {
        let mut after = history.clone();
        after.push(targets.played);
        let legal = canonical_moves(after.position());
        if let Some(place) = legal.iter().position(|m| *m == reply) {
            let packed = legal.iter().map(|m| PackedMove::pack(*m));
            policy.indices_into(packed, after.position(), &mut moves);
            push_played(&mut shares, legal.len(), place, share);
        }
    }
    replies.push(&moves, &shares);
}

#[cfg(test)]
mod tests;
