//! How much better searching is than the network alone, as a strong engine sees it.
//!
//! Self-play teaches a network what a search makes of its policy and value. That helps only where the search's
//! policy target is better than the policy it began with ("policy improvement"). Matches show it after hours;
//! here it is measured move by move: the engine values every legal move of a position, and a policy loses
//! the difference between the best of them and what it expects to play.

use anyhow::Context as _;
use rookery_common::chess::GameHistory;
use rookery_common::pgn::Evaluation;
use rookery_engine::search::Report;
use shakmaty::{Color, Move, Position};

use crate::analyst::Analyst;

/// What the engine says of a position's moves.
#[derive(Debug, Clone)]
pub struct Judgement {
    /// The share of the points that each legal move leaves its mover, 0 to 1, in canonical order.
    pub scores: Vec<f64>,
}

impl Judgement {
    /// Asks the engine about each of the moves, which are all the legal ones. What was played before the
    /// position does not count.
    ///
    /// # Errors
    ///
    /// If the engine fails.
    pub fn ask(analyst: &mut Analyst, game: &GameHistory, moves: &[Move]) -> anyhow::Result<Self> {
        analyst.new_game()?;
        let mover = game.turn();
        let score = |m: &Move| -> anyhow::Result<f64> {
            let mut after = game.position().clone();
            after.play_unchecked(*m);
            if after.is_game_over() {
                return Ok(if after.is_checkmate() { 1.0 } else { 0.5 });
            }
            let evaluation = analyst.ask(&after, &[])?.evaluation;
            let evaluation = evaluation.with_context(|| {
                let name = analyst.name();
                format!("{name}, said no score after a move; give it more --nodes")
            })?;
            Ok(expected(evaluation, mover))
        };
        let scores: anyhow::Result<Vec<f64>> = moves.iter().map(score).collect();
        Ok(Self { scores: scores? })
    }

    /// What the position is worth: as much as its best move.
    pub fn best(&self) -> f64 {
        self.scores.iter().copied().fold(0.0, f64::max)
    }

    /// What a policy over the moves is expected to lose by its choice, 0 to 1.
    pub fn loss(&self, policy: impl IntoIterator<Item = f32>) -> f64 {
        let expected = self.scores.iter().zip(policy);
        self.best() - expected.map(|(score, p)| score * f64::from(p)).sum::<f64>()
    }
}

fn expected(evaluation: Evaluation, mover: Color) -> f64 {
    let white = evaluation.expected_score();
    mover.fold_wb(white, 1.0 - white)
}

/// What policies and values of one kind cost, over many positions.
#[derive(Debug, Clone, Default)]
pub struct Tally {
    /// What the whole policy loses.
    pub policy: Sample,
    /// What its best move loses.
    pub best: Sample,
    /// How far the value is from the engine's, in shares of the points, squared.
    pub value: Sample,
}

impl Tally {
    /// Counts what a search reported, or the network alone if it had no visits.
    pub fn add(&mut self, report: &Report, judgement: &Judgement) {
        self.policy
            .add(judgement.loss(report.moves.iter().map(|m| m.target)));
        let best = report
            .best
            .and_then(|best| report.moves.iter().position(|m| m.m == best));
        let score = best.and_then(|place| judgement.scores.get(place).copied());
        self.best.add(judgement.best() - score.unwrap_or_default());
        let value = f64::midpoint(f64::from(report.value.q()), 1.0);
        self.value.add((value - judgement.best()).powi(2));
    }
}

/// Accumulates a mean.
#[derive(Debug, Clone, Default)]
pub struct Sample {
    numbers: Vec<f64>,
}

impl Sample {
    fn add(&mut self, number: f64) {
        self.numbers.push(number);
    }

    /// The mean, 0 of nothing.
    pub fn mean(&self) -> f64 {
        self.numbers.iter().sum::<f64>() / self.numbers.len().max(1) as f64
    }

    /// By how much the mean of this is below that of `other`, whose numbers are of the same positions in the
    /// same order, and the half width of its 95 % interval; one number has none.
    pub fn gain_over(&self, other: &Self) -> (f64, Option<f64>) {
        let pairs = other.numbers.iter().zip(&self.numbers);
        let gains = Self {
            numbers: pairs.map(|(before, after)| before - after).collect(),
        };
        let (mean, count) = (gains.mean(), gains.numbers.len() as f64);
        let squares: f64 = gains.numbers.iter().map(|gain| (gain - mean).powi(2)).sum();
        let width = 1.96 * (squares / (count - 1.0) / count).sqrt();
        (mean, (count > 1.0).then_some(width))
    }
}

#[cfg(test)]
mod tests {
    use rookery_common::params::SearchParams;
    use rookery_engine::dummy::HandEvaluator;
    use rookery_engine::search::search_position;
    use rookery_uci::Launch;

    use super::*;

    #[test]
    fn a_policy_loses_what_its_moves_are_worth_less() {
        let judgement = Judgement {
            scores: vec![0.5, 0.9, 0.1],
        };
        assert_eq!(judgement.best(), 0.9);
        assert!((judgement.loss([0.5, 0.5, 0.0]) - 0.2).abs() < 1e-9);
        assert!(judgement.loss([0.0, 1.0, 0.0]).abs() < 1e-9);
    }

    #[test]
    fn gains_are_of_pairs() {
        let sample = |numbers: [f64; 3]| Sample {
            numbers: numbers.to_vec(),
        };
        let (gain, width) = sample([0.0, 1.0, 2.0]).gain_over(&sample([1.0, 2.0, 3.0]));
        assert_eq!((gain, width), (1.0, Some(0.0)));
        let (gain, width) = sample([0.0, 0.0, 0.0]).gain_over(&sample([1.0, -1.0, 0.0]));
        assert_eq!(gain, 0.0);
        let width = width.unwrap();
        assert!(
            (width - 1.96 * (1.0_f64 / 3.0).sqrt()).abs() < 1e-9,
            "{width}"
        );
        let [one, other] = [0.25, 0.75].map(|number| Sample {
            numbers: vec![number],
        });
        assert_eq!(one.gain_over(&other), (0.5, None));
    }

    #[test]
    fn a_search_that_takes_the_queen_is_better_than_a_policy_without_a_plan() {
        let mut analyst = Analyst::start(&Launch::new("stockfish"), 500).unwrap();
        for fen in [
            "4k3/8/8/3q4/4P3/8/8/4K3 w - - 0 1",
            "4k3/8/8/4p3/3Q4/8/8/4K3 b - - 0 1",
        ] {
            let game = GameHistory::from_fen(fen).unwrap();
            let (mut alone, mut searched) = (Tally::default(), Tally::default());
            for (tally, visits) in [(&mut alone, 0), (&mut searched, 200)] {
                let evaluator = &mut HandEvaluator::default();
                let params = SearchParams::default();
                let report = search_position(&game, &params, visits, evaluator, 1).unwrap();
                let moves: Vec<Move> = report.moves.iter().map(|m| m.m).collect();
                let judgement = Judgement::ask(&mut analyst, &game, &moves).unwrap();
                assert!(judgement.best() > 0.4, "{judgement:?}");
                tally.add(&report, &judgement);
            }
            assert!(searched.best.mean() < 0.05, "{searched:?}");
            assert!(searched.policy.gain_over(&alone.policy).0 > 0.0);
            assert!(searched.value.mean() < alone.value.mean());
        }
    }
}
