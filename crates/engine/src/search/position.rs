//! One position, searched to the end of its budget.

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rookery_common::chess::{GameHistory, PackedMove};
use rookery_common::params::{RootSearch, SearchParams};
use shakmaty::{Move, Position as _};

use super::{
    Budget, Exploration, Limits, MoveSummary, Pending, Purpose, Scratch, Search, Settings, Summary,
};
use crate::branch::Branch;
use crate::evaluator::{Batch, Evaluations, Evaluator, EvaluatorError, Wdl};

/// What a search found.
#[derive(Debug, Clone, PartialEq)]
pub struct Report {
    /// The value for the mover: the evaluator's own with no visits, else the search's.
    pub value: Wdl,
    /// The legal moves in canonical order.
    pub moves: Vec<MoveReport>,
    /// The best move, none if there is no legal one.
    pub best: Option<Move>,
    /// The best line, beginning with the move of most visits; empty with no visits.
    pub pv: Vec<Move>,
    /// The most visited part of the tree; none if there is no legal move.
    pub tree: Option<Branch>,
}

/// One move of a [`Report`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MoveReport {
    /// The move.
    pub m: Move,
    /// The policy's probability, 0 to 1, after the policy temperature, and the root policy temperature if there are visits.
    pub prior: f32,
    /// Visits.
    pub visits: u32,
    /// The value for the mover, -1 to 1, if it was visited.
    pub q: Option<f32>,
    /// Its share of the policy target that self-play would record of this search, 0 to 1; with no
    /// visits the prior.
    pub target: f32,
}

/// Searches the position on the board without noise, `visits` visits of its moves (those of
/// `params` are not used); with 0 it is only evaluated. A mate or stalemate has the value of the result
/// and no moves; any other draw is searched, as the question is what the evaluator thinks of it. The
/// report's tree has the `shown` most visited nodes.
///
/// # Errors
///
/// [`EvaluatorError`] if the evaluator failed or its answer does not fit.
///
/// # Examples
///
/// ```
/// use rookery_common::chess::GameHistory;
/// use rookery_common::encoding::{InputEncoding, PolicyEncoding};
/// use rookery_common::params::SearchParams;
/// use rookery_engine::dummy::HandEvaluator;
/// use rookery_engine::search::search_position;
///
/// let game = GameHistory::from_fen("6k1/5ppp/8/8/8/8/8/R5K1 w - - 0 1").unwrap();
/// let mut evaluator = HandEvaluator::new(InputEncoding::Lc0112, PolicyEncoding::Lc01858);
/// let report = search_position(&game, &SearchParams::default(), 200, &mut evaluator, 1)?;
/// assert_eq!(report.best.unwrap().to_string(), "Ra1-a8");
/// assert!(report.value.q() > 0.9, "mate");
/// # Ok::<(), rookery_engine::EvaluatorError>(())
/// ```
pub fn search_position(
    game: &GameHistory,
    params: &SearchParams,
    visits: u32,
    evaluator: &mut dyn Evaluator,
    shown: usize,
) -> Result<Report, EvaluatorError> {
    if let Some(report) = finished(game) {
        return Ok(report);
    }
    let settings = Settings::new(params);
    let budget = budget(&settings, visits);
    let mut searches = [Search::default()];
    drive(&mut searches, &mut [game.clone()], &budget, evaluator)?;
    let [search] = &searches;
    let tree = Branch::new(search.tree(), shown);
    Ok(Report {
        tree: Some(tree),
        ..report(search, game, &budget)
    })
}

/// Searches the positions on these boards side by side, each as [`search_position`] would; the
/// reports have no tree.
///
/// # Errors
///
/// As [`search_position`].
pub fn search_positions(
    games: &[&GameHistory],
    params: &SearchParams,
    visits: u32,
    evaluator: &mut dyn Evaluator,
) -> Result<Vec<Report>, EvaluatorError> {
    let settings = Settings::new(params);
    let budget = budget(&settings, visits);
    let open: Vec<&GameHistory> = games
        .iter()
        .copied()
        .filter(|game| can_move(game))
        .collect();
    let mut searches: Vec<Search> = open.iter().map(|_| Search::default()).collect();
    let mut boards: Vec<GameHistory> = open.iter().map(|game| (*game).clone()).collect();
    drive(&mut searches, &mut boards, &budget, evaluator)?;
    let mut searches = searches.iter();
    let report_of = |game: &&GameHistory| {
        finished(game).or_else(|| searches.next().map(|search| report(search, game, &budget)))
    };
    Ok(games.iter().filter_map(report_of).collect())
}

fn can_move(game: &GameHistory) -> bool {
    !game.position().legal_moves().is_empty()
}

/// The report of a game in which there is no legal move.
fn finished(game: &GameHistory) -> Option<Report> {
    let end = game.end().filter(|_| !can_move(game))?;
    let value = Wdl::from_q(f32::from(end.result.score_for(game.turn())));
    let value = if value.q() == 0.0 { Wdl::DRAW } else { value };
    Some(Report {
        value,
        moves: Vec::new(),
        best: None,
        pv: Vec::new(),
        tree: None,
    })
}

fn budget(settings: &Settings, visits: u32) -> Budget<'_> {
    Budget {
        settings,
        visits,
        exploration: Exploration::Plain,
        purpose: Purpose::Target,
        limits: Limits::ONE_LEAF,
    }
}

/// Searches positions to the end of their budget, a leaf of each in every batch. The games come
/// back as they were.
fn drive(
    searches: &mut [Search],
    games: &mut [GameHistory],
    budget: &Budget<'_>,
    evaluator: &mut dyn Evaluator,
) -> Result<(), EvaluatorError> {
    // A search without noise draws no random numbers.
    let mut rng = ChaCha8Rng::seed_from_u64(0);
    let mut scratch = Scratch::default();
    let mut pending: Vec<Pending> = searches.iter().map(|_| Pending::default()).collect();
    let mut batch = Batch::new(evaluator.input(), evaluator.policy());
    let mut answer = Evaluations::default();
    loop {
        batch.clear();
        for ((search, game), pending) in searches.iter_mut().zip(&mut *games).zip(&mut pending) {
            let ask = |game: &GameHistory, moves: &[PackedMove], _: &mut Evaluations| {
                batch.push_packed(game, moves.iter().copied());
                false
            };
            search.gather(game, budget, &mut rng, pending, &mut scratch, ask);
        }
        if batch.is_empty() {
            return Ok(());
        }
        evaluator.evaluate(&batch, &mut answer)?;
        let mut answers = answer.of_batch(&batch)?;
        for (search, pending) in searches.iter_mut().zip(&mut pending) {
            search.apply(pending, budget.settings, &mut answers);
        }
    }
}

fn report(search: &Search, game: &GameHistory, budget: &Budget<'_>) -> Report {
    let summary = search.summary(game.position());
    let place = match &budget.settings.params.root {
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
    let targets = targets(search, &summary, budget);
    let moves: Vec<MoveReport> = summary
        .moves
        .iter()
        .zip(targets)
        .map(|(m, target)| MoveReport {
            m: m.m,
            prior: m.prior,
            visits: m.visits,
            q: m.q,
            target,
        })
        .collect();
    let pv = search.principal_variation(game.position());
    Report {
        value: search.value(&budget.settings.params.root),
        best: moves.get(place).map(|m| m.m),
        moves,
        pv,
        tree: None,
    }
}

/// The policy target of a search, in the order of its summary.
fn targets(search: &Search, summary: &Summary, budget: &Budget<'_>) -> Vec<f32> {
    let visits: u32 = summary.moves.iter().map(|m| m.visits).sum();
    match &budget.settings.params.root {
        _ if visits == 0 => summary.moves.iter().map(|m| m.prior).collect(),
        RootSearch::Gumbel(gumbel) => {
            let improved = search.improved_policy(gumbel);
            summary.edges.iter().map(|edge| improved[*edge]).collect()
        }
        RootSearch::Puct => {
            let share = |m: &MoveSummary| m.visits as f32 / visits as f32;
            summary.moves.iter().map(share).collect()
        }
    }
}

#[cfg(test)]
mod tests {
    use rookery_common::params::GumbelParams;

    use super::*;
    use crate::dummy::HandEvaluator;
    use crate::testing::fen;

    const FREE_QUEEN: &str = "4k3/8/8/3q4/4P3/8/8/4K3 w - - 0 1";
    const BARE_KINGS: &str = "8/8/8/4k3/8/8/8/4K3 w - - 0 1";

    fn report(text: &str, params: &SearchParams, visits: u32) -> Report {
        search_position(&fen(text), params, visits, &mut HandEvaluator::default(), 1).unwrap()
    }

    #[test]
    fn a_search_reports_visits_values_and_the_best_line() {
        let gumbel = RootSearch::Gumbel(GumbelParams::default());
        for root in [RootSearch::Puct, gumbel] {
            let params = SearchParams {
                root,
                ..SearchParams::default()
            };
            let report = report(FREE_QUEEN, &params, 200);
            assert_eq!(report.moves.iter().map(|m| m.visits).sum::<u32>(), 200);
            assert!((report.moves.iter().map(|m| m.target).sum::<f32>() - 1.0).abs() < 1e-4);
            let most = report
                .moves
                .iter()
                .max_by(|a, b| a.target.total_cmp(&b.target));
            assert_eq!(most.map(|m| m.m), report.best);
            assert!(report.best.unwrap().is_capture());
            assert_eq!(report.pv.first(), report.best.as_ref());
            assert!(report.pv.len() > 1);
            assert!(
                report.value.q() > -0.6,
                "searched, it is better than it looks"
            );
            let sum = report.value.win + report.value.draw + report.value.loss;
            assert!((sum - 1.0).abs() < 1e-4);
        }
    }

    #[test]
    fn side_by_side_every_position_is_searched_as_alone() {
        let games = [
            fen(FREE_QUEEN),
            fen("7k/5KQ1/8/8/8/8/8/8 b - - 0 1"),
            fen(BARE_KINGS),
            fen("4k3/8/8/4p3/3Q4/8/8/4K3 b - - 0 1"),
        ];
        let params = SearchParams::default();
        let evaluator = &mut HandEvaluator::default();
        let all: Vec<_> = games.iter().collect();
        let together = search_positions(&all, &params, 60, evaluator).unwrap();
        for (game, report) in games.iter().zip(together) {
            let alone = search_position(game, &params, 60, evaluator, 1).unwrap();
            assert_eq!(
                report,
                Report {
                    tree: None,
                    ..alone
                }
            );
        }
    }

    #[test]
    fn without_visits_the_evaluation_is_reported() {
        let report = report(FREE_QUEEN, &SearchParams::default(), 0);
        assert!(report.value.q() < -0.5, "a queen down");
        assert!(report.moves.iter().all(|m| m.visits == 0 && m.q.is_none()));
        assert!((report.moves.iter().map(|m| m.prior).sum::<f32>() - 1.0).abs() < 1e-4);
        assert!(report.moves.iter().all(|m| m.target == m.prior));
        assert!(report.pv.is_empty());
    }

    #[test]
    fn a_finished_game_has_its_result() {
        let mated = report(
            "7k/5KQ1/8/8/8/8/8/8 b - - 0 1",
            &SearchParams::default(),
            50,
        );
        assert_eq!((mated.value, mated.best), (Wdl::LOSS, None));
        let stalemate = report(
            "7k/5K2/6Q1/8/8/8/8/8 b - - 0 1",
            &SearchParams::default(),
            50,
        );
        assert_eq!(stalemate.value, Wdl::DRAW);
    }

    #[test]
    fn a_draw_in_which_there_are_moves_is_evaluated() {
        let fifty_moves = FREE_QUEEN.replace(" 0 1", " 100 90");
        for text in [fifty_moves.as_str(), BARE_KINGS] {
            let (game, params) = (fen(text), SearchParams::default());
            let legal = game.position().legal_moves().len();
            assert!(game.end().is_some() && legal > 0);
            for visits in [0, 20] {
                let report = report(text, &params, visits);
                let found: u32 = report.moves.iter().map(|m| m.visits).sum();
                assert_eq!((report.moves.len(), found), (legal, visits), "{text}");
            }
        }
        let value = report(&fifty_moves, &SearchParams::default(), 0).value;
        assert!(value.q() < -0.5, "the evaluator does not see the draw");
    }
}
