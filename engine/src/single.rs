//! One position, searched to the end of its budget.

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rookery_common::chess::GameHistory;
use rookery_common::params::{RootSearch, SearchParams};
use shakmaty::{Move, MoveList};

use crate::evaluator::{Batch, Evaluations, Evaluator, EvaluatorError, Wdl};
use crate::search::{Budget, Exploration, Search, Step};

/// What a search found.
#[derive(Debug, Clone, PartialEq)]
pub struct Report {
    /// The value for the mover: the evaluator's own with no visits, else the search's.
    pub value: Wdl,
    /// The legal moves in canonical order.
    pub moves: Vec<MoveReport>,
    /// The best move, none if the game is over.
    pub best: Option<Move>,
    /// The best line, beginning with the move of most visits; empty with no visits.
    pub pv: Vec<Move>,
}

/// One move of a [`Report`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MoveReport {
    /// The move.
    pub m: Move,
    /// The policy's probability, 0 to 1, after the root policy temperature if there are visits.
    pub prior: f32,
    /// Visits.
    pub visits: u32,
    /// The value for the mover, -1 to 1, if it was visited.
    pub q: Option<f32>,
}

/// Searches the position on the board without noise, `visits` visits of its moves (those of
/// `params` are not used); with 0 it is only evaluated. A position in which the game is over has
/// the value of the result and no moves.
///
/// # Errors
///
/// [`EvaluatorError`] if the evaluator failed or its answer does not fit.
pub fn search_position(
    game: &GameHistory,
    params: &SearchParams,
    visits: u32,
    evaluator: &mut dyn Evaluator,
) -> Result<Report, EvaluatorError> {
    if let Some(end) = game.end() {
        let value = Wdl::from_q(f32::from(end.result.score_for(game.turn())));
        let value = if value.q() == 0.0 { Wdl::DRAW } else { value };
        return Ok(Report {
            value,
            moves: Vec::new(),
            best: None,
            pv: Vec::new(),
        });
    }
    let mut search = Search::default();
    let budget = Budget {
        params,
        visits,
        exploration: Exploration::Plain,
    };
    drive(&mut search, &mut game.clone(), &budget, evaluator)?;
    Ok(report(&search, game, &budget))
}

/// Steps a search to the end of its budget.
fn drive(
    search: &mut Search,
    game: &mut GameHistory,
    budget: &Budget<'_>,
    evaluator: &mut dyn Evaluator,
) -> Result<(), EvaluatorError> {
    // A search without noise draws no random numbers.
    let mut rng = ChaCha8Rng::seed_from_u64(0);
    let mut moves = MoveList::new();
    let mut batch = Batch::new(evaluator.input(), evaluator.policy());
    let mut answer = Evaluations::default();
    while search.step(game, budget, &mut rng, &mut moves) == Step::Ask {
        batch.clear();
        batch.push(game, &moves);
        search.rewind(game);
        evaluator.evaluate(&batch, &mut answer)?;
        match answer.values.as_slice() {
            [value] if answer.logits.len() == moves.len() => search.answer(&answer.logits, *value),
            _ => {
                return Err(EvaluatorError(
                    "the answer does not fit the question".to_owned(),
                ));
            }
        }
    }
    Ok(())
}

fn report(search: &Search, game: &GameHistory, budget: &Budget<'_>) -> Report {
    let summary = search.summary(game.position());
    let place = match &budget.params.root {
        RootSearch::Gumbel(gumbel) if budget.visits > 0 => {
            let edge = search.gumbel_choice(gumbel, Exploration::Plain);
            summary
                .edges
                .iter()
                .position(|e| *e == edge)
                .unwrap_or_default()
        }
        _ => summary.most_visited(),
    };
    let moves: Vec<MoveReport> = summary
        .moves
        .iter()
        .map(|m| MoveReport {
            m: m.m,
            prior: m.prior,
            visits: m.visits,
            q: m.q,
        })
        .collect();
    let pv = search.principal_variation(game.position());
    Report {
        value: summary.value,
        best: moves.get(place).map(|m| m.m),
        moves,
        pv,
    }
}
