//! What the value learns of a position: how its game ended, and what searches expected of it.

use rookery_common::chess::GameResult;
use rookery_common::params::{CutOff, TrainingParams};
use rookery_engine::Wdl;
use shakmaty::Color;

use super::record::{Record, Searched, Source};

/// Thousandths, in which values are kept.
const ALL: i16 = 1000;

/// How value targets are mixed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ValueMix {
    /// Share of what searches expected, 0 to 1; the rest is the game's result.
    pub q_ratio: f32,
    /// Plies over which that is a mean, see [`looking_ahead`]; 1 takes the position's own search.
    pub q_horizon: f32,
    /// What a result or a later search counts for a ply before it; the rest counts as a draw.
    pub discount: f32,
    /// What counts as the result of games that their ply limit ended.
    pub cut_off: CutOff,
}

impl From<&TrainingParams> for ValueMix {
    fn from(params: &TrainingParams) -> Self {
        Self {
            q_ratio: params.q_ratio as f32,
            q_horizon: params.q_horizon as f32,
            discount: params.discount as f32,
            cut_off: params.cut_off,
        }
    }
}

impl ValueMix {
    /// The target of a ply for its mover: the game's result and `q_ratio` of what searches, or whoever has
    /// commented on the game, expected; all of one where there is nothing of the other.
    pub(super) fn target(self, record: &Record<'_>, ply: u32, mover: Color) -> Wdl {
        let result = match (record.result, self.cut_off) {
            (Some(result), _) => Some(outcome(result, mover)),
            (None, CutOff::LastSearch) => last_expected(record, ply),
            (None, CutOff::ByKind) if record.source == Source::Puzzle => None,
            (None, CutOff::OwnSearch) => None,
            (None, CutOff::ByKind | CutOff::Draw) => Some(Wdl::DRAW),
        };
        let left = record.positions().saturating_sub(ply);
        let result = result.map(|wdl| faded(wdl, self.discount.powi(left as i32)));
        let searched = expected(record, ply)
            .map(|_| looking_ahead(record, ply, mover, self.q_horizon, self.discount));
        match (result, searched) {
            (Some(result), Some(wdl)) => result.mixed(wdl, self.q_ratio),
            (result, wdl) => result.or(wdl).unwrap_or(Wdl::DRAW),
        }
    }
}

/// Plies that the auxiliary short-horizon value looks ahead (KataGo has such heads): half of it comes
/// from the next five.
const SHORT: f32 = 8.0;

/// What the auxiliary short-horizon value learns of a ply.
pub(super) fn short(record: &Record<'_>, ply: u32, mover: Color) -> Wdl {
    looking_ahead(record, ply, mover, SHORT, 1.0)
}

/// What the searches of the plies from `ply` on expected for `mover`, each ply leaving `1 - 1 / horizon` to those
/// after it: TD(λ) (Sutton, "Learning to Predict by the Methods of Temporal Differences", 1988). What is left at
/// the game's end is its result, or what was expected last where it has none. All of it is faded by `discount` for
/// each ply that it is away.
fn looking_ahead(record: &Record<'_>, ply: u32, mover: Color, horizon: f32, discount: f32) -> Wdl {
    let left = 1.0 - 1.0 / horizon.max(1.0);
    let (mut mean, mut rest, mut counts, mut last) = (Wdl::default(), 1.0, 1.0, Wdl::DRAW);
    // After five horizons next to nothing is left.
    for later in 0..(5.0 * horizon).ceil() as u32 {
        let Some(wdl) = expected(record, ply + later) else {
            break;
        };
        last = seen_from(wdl, later);
        add(&mut mean, faded(last, counts), rest * (1.0 - left));
        rest *= left;
        counts *= discount;
    }
    let end = record.result.map(|result| outcome(result, mover));
    add(&mut mean, faded(end.unwrap_or(last), counts), rest);
    // Forty shares of a sure win add up to a little more than one.
    Wdl {
        win: mean.win.min(1.0),
        draw: mean.draw.min(1.0),
        loss: mean.loss.min(1.0),
    }
}

/// Searches at a game's end that are asked together what would come after it. They are an even number, so that
/// either side's hopes weigh the same.
const LAST_SEARCHES: u32 = 4;

/// What the last searches expected of the game for the mover of `ply`; none where nothing was searched.
fn last_expected(record: &Record<'_>, ply: u32) -> Option<Wdl> {
    let plies = record.positions();
    let last = plies.saturating_sub(LAST_SEARCHES)..plies;
    let share = 1.0 / last.len() as f32;
    let mut mean = Wdl::default();
    for last in last {
        let wdl = seen_from(expected(record, last)?, last.abs_diff(ply));
        add(&mut mean, wdl, share);
    }
    (plies > 0).then_some(mean)
}

/// What is left of an expectation when the rest of it counts as a draw.
fn faded(wdl: Wdl, counts: f32) -> Wdl {
    Wdl::DRAW.mixed(wdl, counts)
}

fn add(mean: &mut Wdl, wdl: Wdl, share: f32) {
    mean.win += share * wdl.win;
    mean.draw += share * wdl.draw;
    mean.loss += share * wdl.loss;
}

/// The expected values at this distance in plies, as the mover here sees it.
const fn seen_from(wdl: Wdl, apart: u32) -> Wdl {
    if apart.is_multiple_of(2) {
        wdl
    } else {
        wdl.flipped()
    }
}

/// What a game's result is for a mover.
pub fn outcome(result: GameResult, mover: Color) -> Wdl {
    match result.score_for(mover) {
        1 => Wdl::WIN,
        0 => Wdl::DRAW,
        _ => Wdl::LOSS,
    }
}

/// What the search of a ply, or a comment, expected for the ply's mover, if there was one. Comments say how
/// many points to expect, and nothing of draws.
fn expected(record: &Record<'_>, ply: u32) -> Option<Wdl> {
    let searched = record.searched(ply)?;
    Some(match record.source {
        Source::Pgn => Wdl::from_score(f32::from(searched.q) / f32::from(ALL)),
        Source::SelfPlay | Source::Puzzle => expectation(searched),
    })
}

/// Win, draw and loss from value and draw probability; a pair that no probabilities give (rounding,
/// a scalar value head) is brought to the nearest.
fn expectation(searched: Searched) -> Wdl {
    let q = searched.q;
    let draw = searched.draw.min(ALL - q.abs());
    // In whole units, so that no probability falls below 0 by rounding.
    let share = |half_units: i16| f32::from(half_units) / (2.0 * f32::from(ALL));
    Wdl {
        win: share(ALL - draw + q),
        draw: share(2 * draw),
        loss: share(ALL - draw - q),
    }
}
