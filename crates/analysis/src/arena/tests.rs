//! Tests of matches.

use rookery_common::chess::{GameEnd, GameResult, Termination};
use rookery_common::chunk::GameStart;
use rookery_common::encoding::{InputEncoding, PolicyEncoding};
use rookery_common::params::SearchParams;
use rookery_engine::dummy::{HandEvaluator, UniformEvaluator};

use super::*;

const INPUT: InputEncoding = InputEncoding::Classic19;
const POLICY: PolicyEncoding = PolicyEncoding::Lc01858;

fn plan(pairs: u32, sprt: Option<SprtParams>) -> MatchPlan {
    let mut params = MatchParams {
        ply_limit: 200,
        ..MatchParams::default()
    };
    params.search = SearchParams {
        visits: 30,
        noise: None,
        ..SearchParams::default()
    };
    MatchPlan {
        pairs,
        params,
        book: OpeningBook::built_in(),
        seed: Seed(5),
        sprt,
        concurrency: 8,
    }
}

fn hand<'a>() -> Box<dyn Evaluator + Send + 'a> {
    Box::new(HandEvaluator::new(INPUT, POLICY))
}

/// The hand-made evaluator against one that knows nothing.
fn contest(plan: &MatchPlan, threads: usize) -> (Standing, Vec<GameRecord>) {
    let players = || -> Players<'_> { [hand(), Box::new(UniformEvaluator::new(INPUT, POLICY))] };
    let players = (0..threads).map(|_| players()).collect();
    let mut games = Vec::new();
    let standing = play(plan, players, |game, _| {
        games.push(game.clone());
        Ok(ControlFlow::Continue(()))
    });
    games.sort_by_key(|game| game.index);
    (standing.unwrap(), games)
}

#[test]
fn both_colours_are_played_from_each_opening() {
    let (standing, games) = contest(&plan(6, None), 1);
    assert_eq!((games.len(), standing.tally.games()), (12, 12));
    assert_eq!(standing.tally.pairs.pairs(), 6);
    let mut starts = HashMap::new();
    for game in &games {
        let GameKind::Match { pair, candidate } = game.kind else {
            panic!("no match game")
        };
        let side = u32::from(candidate == Side::Black);
        assert_eq!(game.index, 2 * pair + side);
        let start = starts.entry(pair).or_insert_with(|| game.start.clone());
        assert_eq!(*start, game.start);
    }
    assert_eq!(starts.len(), 6);
}

#[test]
fn results_are_counted_by_the_first_players_colour() {
    let plan = plan(2, None);
    let mut standing = Standing::default();
    for (pair, candidate, result) in [
        (0, Side::White, GameResult::WhiteWins),
        (0, Side::Black, GameResult::WhiteWins),
        (1, Side::White, GameResult::Draw),
        (1, Side::Black, GameResult::BlackWins),
    ] {
        let game = GameRecord {
            index: 0,
            kind: GameKind::Match { pair, candidate },
            seed: Seed(1),
            start: GameStart::default(),
            plies: Vec::new(),
            end: GameEnd {
                result,
                termination: Termination::Resignation,
            },
        };
        standing.add(&game, &plan).unwrap();
    }
    let table = report::table("new", &standing);
    let expected = "| new has | games | wins | draws | losses |\n|---|---|---|---|---|\n\
                    | White | 2 | 1 | 1 | 0 |\n| Black | 2 | 1 | 0 | 1 |\n| both | 4 | 2 | 1 | 1 |\n";
    assert_eq!(table, expected);
    let json = report::tally(&standing);
    assert_eq!(
        json["black"],
        serde_json::json!({"wins": 1, "draws": 0, "losses": 1})
    );
}

#[test]
fn the_games_do_not_depend_on_the_number_of_threads() {
    let (standing, games) = contest(&plan(5, None), 1);
    let (again, same) = contest(&plan(5, None), 3);
    assert_eq!(games, same);
    assert_eq!(standing.tally, again.tally);
}

#[test]
fn the_better_player_scores_and_a_test_ends_the_match_early() {
    let sprt = SprtParams {
        elo0: 0.0,
        elo1: 100.0,
        ..SprtParams::default()
    };
    let (standing, games) = contest(&plan(100, Some(sprt)), 2);
    let line = report::line(&standing);
    assert_eq!(standing.sprt.unwrap().verdict, Verdict::AcceptH1, "{line}");
    assert!(games.len() < 150, "{line}");
    assert!(standing.tally.score().unwrap() > 0.6, "{line}");
}

/// Short games come in first, and length goes with the result.
#[test]
fn the_test_counts_pairs_in_their_order() {
    let sprt = SprtParams {
        elo0: 0.0,
        elo1: 100.0,
        ..SprtParams::default()
    };
    let plan = plan(80, Some(sprt));
    let (_, games) = contest(&self::plan(80, None), 2);
    let mut standing = Standing::default();
    for game in &games[1..] {
        standing.add(game, &plan).unwrap();
        assert!(!standing.is_decided(), "the first pair is not complete");
    }
    assert_eq!(standing.tally.pairs.pairs(), 79);
    standing.add(&games[0], &plan).unwrap();
    assert!(standing.is_decided());
}

#[test]
fn a_match_can_be_broken_off() {
    let players = vec![[hand(), hand()]];
    let standing = play(&plan(50, None), players, |_, _| Ok(ControlFlow::Break(())));
    assert_eq!(standing.unwrap().tally.games(), 1);
}
