//! How games end before the rules of chess end them.

use rookery_common::chess::EndgameTables;
use rookery_common::params::{AdjudicationParams, EngineParams, ResignParams, TableParams};
use shakmaty::Color;

use super::contests::{match_job, quick_match};
use super::*;
use crate::testing::QueenTables;

#[test]
fn a_lost_side_resigns_unless_the_game_is_played_on() {
    let start = GameStart {
        fen: Some("3qk3/8/8/8/8/8/P7/4K3 w - - 0 1".into()),
        moves: vec![],
    };
    let job = |play_on_share| {
        let resign = Some(ResignParams {
            threshold: -0.5,
            play_on_share,
        });
        let params = SelfPlayParams {
            resign,
            temperature: Temperature::NONE,
            ..quick()
        };
        let games = planned(vec![start.clone(); 4]);
        Job {
            seed: Seed(1),
            work: Work::SelfPlay { params, games },
        }
    };
    for record in play(&job(0.0)) {
        assert_eq!(record.end.termination, Termination::Resignation);
        assert_eq!(record.end.result, GameResult::BlackWins);
        assert_eq!(record.kind, GameKind::SelfPlay { play_on: false });
        check_record(&record, 12, &RootSearch::Puct);
    }
    for record in play(&job(1.0)) {
        assert_ne!(record.end.termination, Termination::Resignation);
        assert_eq!(record.kind, GameKind::SelfPlay { play_on: true });
    }
}

#[test]
fn the_ply_limit_makes_a_draw() {
    let params = SelfPlayParams {
        ply_limit: 10,
        ..quick()
    };
    for record in play(&self_play(params, 3)) {
        assert_eq!(record.plies.len(), 10);
        assert_eq!(record.end, GameEnd::draw(Termination::PlyLimit));
    }
}

#[test]
fn a_game_is_adjudicated_when_both_agree() {
    let fen = "3qk3/8/8/8/8/8/P7/4K3 w - - 0 1";
    let start = GameStart {
        fen: Some(fen.into()),
        moves: vec![],
    };
    let adjudication = Some(AdjudicationParams {
        win_value: 0.5,
        plies: 4,
        engine: None,
    });
    let params = MatchParams {
        adjudication,
        ..quick_match()
    };
    let game = MatchGame {
        pair: 0,
        candidate: Side::White,
        start,
    };
    let job = Job {
        seed: Seed(9),
        work: Work::Match {
            params,
            games: planned([game]),
        },
    };
    // Both sides evaluate alike here.
    let mut pool = GamePool::new(&job, 1, &[]).unwrap();
    let (mut a, mut b) = (HandEvaluator::default(), HandEvaluator::default());
    let records = pool.run(&mut [&mut a, &mut b]).unwrap();
    assert_eq!(records[0].end.termination, Termination::Adjudication);
    assert_eq!(records[0].end.result, GameResult::BlackWins);
    assert_eq!(records[0].plies.len(), 4);
}

/// Both sides by the same evaluator from these positions.
fn play_from(params: MatchParams, fens: &[&str], judges: &Judges) -> Vec<GameRecord> {
    let game = |fen: &&str| MatchGame {
        pair: 0,
        candidate: Side::White,
        start: GameStart {
            fen: Some((*fen).to_owned()),
            moves: vec![],
        },
    };
    let work = Work::Match {
        params,
        games: planned(fens.iter().map(game)),
    };
    let job = Job {
        seed: Seed(9),
        work,
    };
    let pool = GamePool::new(&job, 4, &[]).unwrap();
    let (mut a, mut b) = (HandEvaluator::default(), HandEvaluator::default());
    let mut pool = pool.with_judges(judges.clone());
    let mut records = pool.run(&mut [&mut a, &mut b]).unwrap();
    records.sort_by_key(|record| record.index);
    records
}

#[test]
fn tables_end_a_game_at_the_capture_or_pawn_move_that_leads_to_them() {
    let tables: Arc<dyn EndgameTables> = Arc::new(QueenTables);
    let judges = Judges {
        tables: Some(tables),
        referee: None,
    };
    let params = |pieces| MatchParams {
        tables: Some(TableParams { pieces }),
        ..quick_match()
    };
    // The queen takes the last pawn; a pawn becomes a queen that is safe.
    let fens = [
        "8/8/8/8/2k5/8/p7/Q6K w - - 0 1",
        "8/4P3/8/8/8/2k5/8/7K w - - 0 1",
    ];
    for record in play_from(params(3), &fens, &judges) {
        assert_eq!(record.end.termination, Termination::Adjudication);
        assert_eq!(record.end.result, GameResult::WhiteWins);
        assert_eq!(record.plies.len(), 1);
    }
    // Without tables, with too small ones, or where the job does not want any, games are played on.
    let judged = |params: MatchParams, judges: &Judges| {
        let records = play_from(params, &fens[..1], judges);
        records[0].end.termination == Termination::Adjudication
    };
    assert!(!judged(params(3), &Judges::default()));
    assert!(!judged(quick_match(), &judges));
    let rook = ["8/8/8/8/2k5/8/p7/R6K w - - 0 1"];
    let unknown = play_from(params(3), &rook, &judges).remove(0);
    assert_ne!(unknown.end.termination, Termination::Adjudication);
}

#[test]
fn tables_give_draws_too() {
    let judges = Judges {
        tables: Some(Arc::new(QueenTables)),
        referee: None,
    };
    let params = MatchParams {
        tables: Some(TableParams { pieces: 3 }),
        ..quick_match()
    };
    let rules = rules::Rules::new(&match_job(params, 1).work);
    let end = |fen| {
        let game = GameHistory::from_fen(fen).unwrap();
        rules.stop(&game, &[], Color::White, false, &judges)
    };
    let draw = GameEnd::draw(Termination::Adjudication);
    assert_eq!(end("4Q3/3k4/8/8/8/8/8/7K b - - 0 1"), Some(draw));
    assert_eq!(
        end("4Q3/3k4/8/8/8/8/8/7K b - - 2 1"),
        None,
        "not just become so"
    );
}

/// An engine of one opinion, which remembers when it was asked.
#[derive(Debug, Default)]
struct Opinion {
    winner: Option<Color>,
    asked: std::sync::Mutex<Vec<usize>>,
}

impl Referee for Opinion {
    fn winner(&self, game: &GameHistory, params: &EngineParams) -> Option<Color> {
        assert_eq!((params.nodes, params.centipawns), (1000, 300));
        self.asked.lock().unwrap().push(game.plies());
        self.winner
    }
}

#[test]
fn an_engine_that_is_to_be_asked_must_agree() {
    let params = MatchParams {
        adjudication: Some(AdjudicationParams {
            win_value: 0.5,
            plies: 4,
            engine: Some(EngineParams {
                nodes: 1000,
                centipawns: 300,
            }),
        }),
        ply_limit: 14,
        ..quick_match()
    };
    let lost = ["3qk3/8/8/8/8/8/P7/4K3 w - - 0 1"];
    let play = |winner| {
        let opinion = Arc::new(Opinion {
            winner,
            ..Opinion::default()
        });
        let referee: Arc<dyn Referee> = opinion.clone();
        let judges = Judges {
            referee: Some(referee),
            tables: None,
        };
        let record = play_from(params.clone(), &lost, &judges).remove(0);
        let asked = opinion.asked.lock().unwrap().clone();
        (record.end, asked)
    };
    let won = GameEnd {
        result: GameResult::BlackWins,
        termination: Termination::Adjudication,
    };
    assert_eq!(play(Some(Color::Black)), (won, vec![4]));
    let limit = GameEnd::draw(Termination::PlyLimit);
    assert_eq!(play(None), (limit, vec![4, 8, 12]), "asked now and then");
    assert_eq!(play(Some(Color::White)).0, limit);
    let alone = play_from(params, &lost, &Judges::default()).remove(0);
    assert_eq!(alone.end, limit, "no engine, no verdict");
}
