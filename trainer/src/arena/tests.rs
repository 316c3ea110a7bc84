//! Tests of matches.

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

fn contest(plan: &MatchPlan, other: &mut dyn Evaluator) -> (Standing, Vec<GameRecord>) {
    let mut hand = HandEvaluator::new(INPUT, POLICY);
    let mut games = Vec::new();
    let standing = play(plan, [&mut hand, other], |game, _| {
        games.push(game.clone());
        Ok(ControlFlow::Continue(()))
    });
    (standing.unwrap(), games)
}

#[test]
fn both_colours_are_played_from_each_opening() {
    let (standing, games) = contest(&plan(6, None), &mut UniformEvaluator::new(INPUT, POLICY));
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
fn the_better_player_scores_and_a_test_ends_the_match_early() {
    let sprt = SprtParams {
        elo0: 0.0,
        elo1: 100.0,
        ..SprtParams::default()
    };
    let plan = plan(100, Some(sprt));
    let (standing, games) = contest(&plan, &mut UniformEvaluator::new(INPUT, POLICY));
    let line = report::line(&standing);
    assert_eq!(standing.sprt.unwrap().verdict, Verdict::AcceptH1, "{line}");
    assert!(games.len() < 150, "{line}");
    assert!(standing.tally.score().unwrap() > 0.6, "{line}");
}

#[test]
fn a_match_can_be_broken_off() {
    let mut players = [
        HandEvaluator::new(INPUT, POLICY),
        HandEvaluator::new(INPUT, POLICY),
    ];
    let [a, b] = &mut players;
    let standing = play(&plan(50, None), [a, b], |_, _| Ok(ControlFlow::Break(())));
    assert_eq!(standing.unwrap().tally.games(), 1);
}
