//! Positions of some thousand games, encoded, with their targets.

use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use rookery_common::chess::moves::canonical_moves;
use rookery_common::chess::{GameHistory, PackedMove};
use rookery_common::encoding::{PolicyEncoding, can_mirror};
use rookery_common::network::{AuxiliaryHead, NetworkSpec};
use rookery_common::pgn::{PgnGame, Skipped};
use rookery_engine::{Batch, Wdl};
use rookery_train::{Ahead, Replies, TrainBatch};
use shakmaty::Color;

use super::filter::{Filter, Wanted};
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

/// What a ply of a game teaches.
struct Lesson {
    played: shakmaty::Move,
    share: f32,
    value: Wdl,
    plies_left: Option<u16>,
    /// The answer, and its share of the opponent's policy target; none at the end.
    reply: Option<(shakmaty::Move, f32)>,
}

/// Encoded positions.
#[derive(Debug, Clone)]
pub struct Block {
    /// Share of a comment's evaluation in the value target; the rest is the game's result.
    q_ratio: f32,
    positions: Batch,
    labels: Vec<Label>,
    /// Only for a network that learns them.
    replies: Option<Replies>,
}

impl Block {
    /// No positions yet, for a network of this kind. Where a comment values a position, `q_ratio` of the
    /// value target, 0 to 1, is that; the rest is the game's result.
    pub fn new(spec: &NetworkSpec, q_ratio: f64) -> Self {
        let learns_replies = spec.auxiliary.contains(&AuxiliaryHead::OpponentReply);
        Self {
            q_ratio: q_ratio as f32,
            positions: Batch::new(spec.input, spec.policy.encoding),
            labels: Vec::new(),
            replies: learns_replies.then(Replies::default),
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
    }

    /// Adds a game's positions. `seed` decides which, where not all are wanted.
    ///
    /// # Errors
    ///
    /// Why the game is passed over.
    pub fn add(&mut self, game: &PgnGame, filter: &Filter, seed: u64) -> Result<(), Skipped> {
        let shares = filter.shares(game)?;
        let wanted = Wanted::new(game.moves.len(), filter, seed);
        let mut history: GameHistory = game.start.clone();
        for (ply, m) in game.moves.iter().enumerate() {
            let mover = history.turn();
            if wanted.includes(ply)
                && let Some(value) = self.value(game, ply, mover)
            {
                let left = (game.moves.len() - ply).min(usize::from(u16::MAX)) as u16;
                let [share, opponent] = [mover, !mover].map(|color| shares[color.fold_wb(0, 1)]);
                let lesson = Lesson {
                    played: *m,
                    share,
                    value,
                    plies_left: game.result.is_some().then_some(left),
                    reply: game.moves.get(ply + 1).map(|reply| (*reply, opponent)),
                };
                self.push(&history, &lesson);
            }
            // The rules may have ended a game that its players went on with.
            history.push(*m);
        }
        Ok(())
    }

    /// The value target of a position; none where neither the game nor a comment gives one.
    fn value(&self, game: &PgnGame, ply: usize, mover: Color) -> Option<Wdl> {
        let result = game.result.map(|result| match result.score_for(mover) {
            1 => Wdl::WIN,
            0 => Wdl::DRAW,
            _ => Wdl::LOSS,
        });
        match (result, game.value(ply).map(Wdl::from_score)) {
            (Some(result), Some(value)) => Some(result.mixed(value, self.q_ratio)),
            (result, value) => result.or(value),
        }
    }

    fn push(&mut self, history: &GameHistory, lesson: &Lesson) {
        let legal = canonical_moves(history.position());
        let Some(place) = legal.iter().position(|m| *m == lesson.played) else {
            return;
        };
        self.positions.push(history, &legal);
        self.labels.push(Label {
            played: place as u16,
            share: lesson.share,
            value: lesson.value,
            mirrors: can_mirror(history),
            plies_left: lesson.plies_left,
        });
        if let Some(replies) = &mut self.replies {
            push_reply(replies, history, lesson, self.positions.policy());
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
            replies: Replies::default(),
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
            batch.ahead.push(Ahead {
                plies: label.plies_left.map(f32::from),
                short_value: label.value,
            });
            if let Some(all) = &self.replies {
                let (moves, shares) = all.of(place);
                batch.replies.push(moves, shares);
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
        }
    }
}

/// Adds what the answer to a lesson's move teaches; nothing where there was none.
fn push_reply(
    replies: &mut Replies,
    history: &GameHistory,
    lesson: &Lesson,
    policy: PolicyEncoding,
) {
    let (mut moves, mut shares) = (Vec::new(), Vec::new());
    if let Some((reply, share)) = lesson.reply {
        let mut after = history.clone();
        after.push(lesson.played);
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
mod tests {
    use rookery_common::pgn::Games;

    use super::*;

    const GAME: &str = "[WhiteElo \"1000\"]\n[BlackElo \"2500\"]\n[Result \"0-1\"]\n\n\
                        1. f3 e5 2. g4 Qh4# 0-1\n";

    fn game(text: &str) -> PgnGame {
        let read = Games::new(text.as_bytes()).next();
        read.unwrap().unwrap().unwrap()
    }

    fn filter() -> Filter {
        Filter {
            min_elo: 0.0,
            assumed_elo: None,
            skip_plies: 0,
            positions_per_game: None,
        }
    }

    fn block(text: &str, filter: &Filter) -> Result<Block, Skipped> {
        let mut block = Block::new(&NetworkSpec::resnet(1, 8), 0.25);
        block.add(&game(text), filter, 3).map(|()| block)
    }

    #[test]
    fn targets_follow_rating_and_result() {
        let block = block(GAME, &filter()).unwrap();
        let batch = block.batch(&[0, 1, 2, 3]);
        assert_eq!(batch.values, [Wdl::LOSS, Wdl::WIN, Wdl::LOSS, Wdl::WIN]);
        assert_eq!(batch.ahead[0].plies, Some(4.0));
        let first = &batch.policy[batch.positions.move_range(0)];
        let mut sorted = first.to_vec();
        sorted.sort_by(|a, b| b.total_cmp(a));
        assert!((sorted[0] - 0.7048).abs() < 1e-4);
        assert!((sorted[1] - 0.2952 / 19.0).abs() < 1e-4);
        for place in 0..4 {
            let sum: f32 = batch.policy[batch.positions.move_range(place)].iter().sum();
            assert!((sum - 1.0).abs() < 1e-5);
        }
        // f2f3 is the played move: its index is the one with the large share.
        let legal = canonical_moves(GameHistory::default().position());
        let place = first.iter().position(|share| *share == sorted[0]).unwrap();
        assert_eq!(legal[place].to().to_string(), "f3");
    }

    #[test]
    fn values_in_comments_have_their_share() {
        let text = GAME.replace("f3", "f3 {[%eval -2.0]}");
        let block = block(&text, &filter()).unwrap();
        let values = block.batch(&[0, 1, 2, 3]).values;
        assert_eq!(
            [values[0], values[2], values[3]],
            [Wdl::LOSS, Wdl::LOSS, Wdl::WIN]
        );
        // Black moves and will win; the comment gives it 67.6 % of the points.
        let of_comment = Wdl::from_score(2.0 * 0.6762 - 1.0);
        let expected = Wdl::WIN.mixed(of_comment, 0.25);
        assert!((values[1].win - expected.win).abs() < 1e-4, "{values:?}");
        assert!((values[1].loss - expected.loss).abs() < 1e-4, "{values:?}");
        assert!(values[1].draw > 0.1, "{values:?}");
    }

    #[test]
    fn without_a_result_only_evaluations_teach() {
        let text = GAME.replace("0-1", "*").replace("f3", "f3 {[%eval -2.0]}");
        let block = block(&text, &filter()).unwrap();
        assert_eq!(block.len(), 1);
        let batch = block.batch(&[0]);
        let value = batch.values[0];
        assert!((value.q() - 0.3524).abs() < 1e-4, "{value:?}");
        assert_eq!(batch.ahead[0].plies, None, "nobody knows how long it lasts");
    }

    #[test]
    fn a_reply_is_what_the_next_position_teaches() {
        let spec = NetworkSpec {
            auxiliary: vec![AuxiliaryHead::OpponentReply],
            ..NetworkSpec::resnet(1, 8)
        };
        let (mut block, mut all) = (Block::new(&spec, 0.25), Block::new(&spec, 0.25));
        block.add(&game(GAME), &filter(), 3).unwrap();
        all.take_from(&block, 4);
        let batch = all.batch(&[0, 1, 2, 3]);
        for place in 0..3 {
            let range = batch.positions.move_range(place + 1);
            let expected = (batch.positions.moves_of(place + 1), &batch.policy[range]);
            assert_eq!(batch.replies.of(place), expected);
        }
        assert!(batch.replies.of(3).0.is_empty(), "mate has no answer");
    }

    #[test]
    fn positions_without_castling_can_be_mirrored() {
        let text = "[WhiteElo \"2000\"]\n[BlackElo \"2000\"]\n[FEN \"4k3/8/8/8/8/8/1P6/R3K3 w - - 0 1\"]\n\
                    [Result \"1-0\"]\n\n1. b4 Kd7 2. Ra7+ Ke6 1-0\n";
        let places = [3, 1, 0];
        for (text, mirrors) in [(text, true), (GAME, false)] {
            let block = block(text, &filter()).unwrap();
            let (plain, mut mirrored) = (block.batch(&places), block.batch(&places));
            block.mirror(&mut mirrored, &places, &[true, false, true]);
            for (row, chosen) in [true, false, true].into_iter().enumerate() {
                let mut expected = plain.positions.clone();
                if chosen && mirrors {
                    expected.mirror(row);
                }
                let got = &mirrored.positions;
                assert_eq!(expected.binary_of(row), got.binary_of(row));
                assert_eq!(expected.moves_of(row), got.moves_of(row));
            }
            assert_eq!(
                (plain.policy, plain.values),
                (mirrored.policy, mirrored.values)
            );
        }
    }

    #[test]
    fn a_forced_move_gets_everything() {
        // Check on the back rank, one square to go to.
        let text =
            "[FEN \"k7/8/1K6/8/8/8/8/7R w - - 0 1\"]\n[Result \"1-0\"]\n\n1. Rh7 Kb8 2. Rh8# 1-0\n";
        let filter = Filter {
            assumed_elo: Some(1500.0),
            ..filter()
        };
        let batch = block(text, &filter).unwrap().batch(&[1]);
        assert_eq!(batch.policy, [1.0]);
    }

    #[test]
    fn games_and_positions_are_chosen_as_asked() {
        let unrated = GAME.replace("[WhiteElo \"1000\"]\n", "");
        assert_eq!(block(&unrated, &filter()).unwrap_err(), Skipped::NoRating);
        let strong = Filter {
            min_elo: 1001.0,
            ..filter()
        };
        assert_eq!(block(GAME, &strong).unwrap_err(), Skipped::LowRating);
        let late = Filter {
            skip_plies: 3,
            ..filter()
        };
        assert_eq!(block(GAME, &late).unwrap().len(), 1);
        let few = Filter {
            positions_per_game: Some(2),
            skip_plies: 1,
            ..filter()
        };
        assert_eq!(block(GAME, &few).unwrap().len(), 2);
    }

    #[test]
    fn an_order_holds_every_position_once() {
        let block = block(GAME, &filter()).unwrap();
        let mut order = block.order(7);
        assert_eq!(order, block.order(7));
        order.sort_unstable();
        assert_eq!(order, [0, 1, 2, 3]);
    }
}
