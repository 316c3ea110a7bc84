//! Puzzles and matches.

use rookery_common::params::AdjudicationParams;
use rookery_common::puzzle::Puzzle;

use super::*;

fn puzzle(id: &str, fen: &str, moves: &str, setup: u32) -> Puzzle {
    let moves = moves.split_whitespace().map(str::to_owned).collect();
    Puzzle {
        id: id.into(),
        fen: fen.into(),
        moves,
        setup,
        rating: 0,
        themes: Vec::new(),
    }
}

#[test]
fn puzzles_are_solved_or_not() {
    let mate = puzzle("mate", "5k2/5ppp/8/8/8/8/8/R3K3 b - - 0 1", "f8g8 a1a8", 1);
    // The solution does not take the queen: nobody plays that.
    let absurd = puzzle(
        "absurd",
        "4k3/8/8/3q4/4P3/8/8/4K3 w - - 0 1",
        "e4e5 d5e5 e1f1",
        0,
    );
    let params = PuzzleParams {
        search: SearchParams {
            visits: 100,
            ..SearchParams::default()
        },
        ply_limit: 6,
        ..PuzzleParams::default()
    };
    let work = Work::Puzzles {
        params,
        games: planned([mate, absurd]),
    };
    let records = play(&Job {
        seed: Seed(3),
        work,
    });
    let solved = |name: &str, solved| GameKind::Puzzle {
        puzzle: name.into(),
        solved,
    };
    assert_eq!(records[0].kind, solved("mate", true));
    assert_eq!(records[0].start.moves.len(), 1);
    assert_eq!(records[0].end.termination, Termination::Checkmate);
    assert_eq!(records[1].kind, solved("absurd", false));
    records
        .iter()
        .for_each(|record| check_record(record, 100, &RootSearch::Puct));
}

pub(super) fn match_job(params: MatchParams, pairs: u32) -> Job {
    let mut opening = GameHistory::default();
    let mut games = Vec::new();
    for pair in 0..pairs {
        let m = canonical_moves(opening.position())[pair as usize];
        opening = GameHistory::default();
        let start = GameStart {
            fen: None,
            moves: vec![m],
        };
        for candidate in [Side::White, Side::Black] {
            games.push(MatchGame {
                pair,
                candidate,
                start: start.clone(),
            });
        }
    }
    Job {
        seed: Seed(9),
        work: Work::Match {
            params,
            games: planned(games),
        },
    }
}

pub(super) fn quick_match() -> MatchParams {
    let search = SearchParams {
        visits: 40,
        solver: false,
        ..MatchParams::default().search
    };
    MatchParams {
        search,
        ply_limit: 120,
        ..MatchParams::default()
    }
}

#[test]
fn the_better_evaluator_wins_the_match_with_both_colours() {
    let adjudication = Some(AdjudicationParams {
        win_value: 0.6,
        plies: 4,
        engine: None,
    });
    let job = match_job(
        MatchParams {
            adjudication,
            ..quick_match()
        },
        4,
    );
    let score = |record: &GameRecord| {
        let GameKind::Match { candidate, .. } = record.kind else {
            unreachable!("a match")
        };
        record.end.result.score_for(candidate.into())
    };
    let records = play(&job);
    assert_eq!(records.len(), 8);
    let total: i8 = records.iter().map(score).sum();
    assert!(total >= 4, "{total}");
    assert!(records.iter().all(|record| score(record) >= 0));
    records
        .iter()
        .for_each(|record| check_record(record, 40, &RootSearch::Puct));
    assert_eq!(
        play_with(&job, 8, 10_000).0,
        records,
        "no chance is involved"
    );
}
