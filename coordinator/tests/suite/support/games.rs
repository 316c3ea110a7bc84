//! Games and chunks made by hand for a job.

use rookery_common::chess::moves::{canonical_moves, parse_uci};
use rookery_common::chess::{GameEnd, GameResult, Termination};
use rookery_common::chunk::{
    ChunkHeader, Effort, GameKind, GameRecord, GameStart, PlyRecord, Side, encode,
};
use rookery_common::network::Program;
use rookery_common::protocol::audits::AuditTask;
use rookery_common::protocol::jobs::{Backend, Job, PairTask, Work};
use rookery_common::puzzle::Puzzle;
use shakmaty::Color;

/// A position in which White mates at once, or is mated after a pawn move.
pub(crate) const EITHER_MATES: &str = "3q3k/6pp/8/8/8/8/P5PP/3Q3K w - - 0 1";

/// Knights out and back twice: a draw by repetition after eight plies.
const SHUFFLE: [&str; 8] = [
    "g1f3", "g8f6", "f3g1", "f6g8", "g1f3", "g8f6", "f3g1", "f6g8",
];
/// Queens aside and back twice, from [`EITHER_MATES`].
const QUEENS: [&str; 8] = [
    "d1b1", "d8b8", "b1d1", "b8d8", "d1b1", "d8b8", "b1d1", "b8d8",
];

/// What happens in a game from [`EITHER_MATES`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    White,
    Draw,
    Black,
}

/// What the candidate gets from a pair, with White and with Black.
pub(crate) type PairPlan = [Score; 2];

/// The candidate's result in one game.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Score {
    Win,
    Draw,
    Loss,
}

/// The puzzle that [`EITHER_MATES`] poses.
pub(crate) fn puzzle(id: &str) -> Puzzle {
    Puzzle {
        id: id.to_owned(),
        fen: EITHER_MATES.to_owned(),
        moves: vec!["d1d8".to_owned()],
        setup: 0,
        rating: 1234,
        themes: vec!["mateIn1".to_owned(), "backRankMate".to_owned()],
    }
}

/// Visits of a search of this job.
fn budget(work: &Work) -> u32 {
    match work {
        Work::SelfPlay { params, .. } => params.search.visits,
        Work::Puzzles { params, .. } => params.search.visits,
        Work::Match { params, .. } => params.search.visits,
        Work::Audit { rules, .. } => rules.search().visits,
    }
}

/// Plies of these moves, which have most of so many visits; `salt` sets how many others have, so that equal
/// moves make different games.
fn plies(start: &GameStart, moves: &[&str], budget: u32, salt: u32) -> Vec<PlyRecord> {
    let mut game = start.history().unwrap();
    let mut rest = salt;
    moves
        .iter()
        .map(|text| {
            let played = parse_uci(game.position(), text).unwrap();
            let legal = canonical_moves(game.position());
            let place = legal.iter().position(|m| *m == played).unwrap();
            let others = if legal.len() > 1 { rest % 16 } else { 0 };
            rest /= 16;
            let mut visits = vec![0; legal.len()];
            visits[(place + 1) % legal.len()] += others;
            visits[place] += budget - others;
            game.push(played);
            PlyRecord {
                played,
                effort: Effort::Full,
                visits,
                target: None,
                root_q: 0.25,
                root_draw: 0.5,
                best_q: 0.25,
            }
        })
        .collect()
}

/// A program has one visit, and expects nothing.
fn as_program(ply: &mut PlyRecord) {
    let most = ply.visits.iter().copied().max();
    for visits in &mut ply.visits {
        *visits = u32::from(Some(*visits) == most);
    }
    (ply.root_q, ply.root_draw, ply.best_q) = (0.0, 0.0, 0.0);
}

fn record(
    job: &Job,
    index: u32,
    kind: GameKind,
    start: GameStart,
    moves: &[&str],
    salt: u32,
) -> GameRecord {
    let mut plies = plies(&start, moves, budget(&job.work), salt);
    let mut game = start.history().unwrap();
    if let (GameKind::Match { candidate, .. }, [own, other]) = (&kind, &*job.work.networks()) {
        let seats = [own, other].map(|network| Program::of_file(network).is_some());
        let first = usize::from(Side::from(game.turn()) != *candidate);
        for (place, ply) in plies.iter_mut().enumerate() {
            if seats[(first + place) % 2] {
                as_program(ply);
            }
        }
    }
    plies.iter().for_each(|ply| game.push(ply.played));
    let end = game.end().unwrap();
    GameRecord {
        index,
        kind,
        seed: job.seed.of_game(index),
        start,
        plies,
        end,
    }
}

/// A self-play game that ends by repetition.
pub(crate) fn selfplay(job: &Job, index: u32, salt: u32) -> GameRecord {
    let kind = GameKind::SelfPlay { play_on: false };
    record(job, index, kind, GameStart::default(), &SHUFFLE, salt)
}

/// A self-play game of these moves, which the rules end with the last one.
pub(crate) fn selfplay_of(job: &Job, index: u32, moves: &[&str]) -> GameRecord {
    let kind = GameKind::SelfPlay { play_on: false };
    record(job, index, kind, GameStart::default(), moves, 0)
}

/// A self-play game from the position of the tests' opening book.
pub(crate) fn selfplay_from_book(job: &Job, index: u32, salt: u32) -> GameRecord {
    let kind = GameKind::SelfPlay { play_on: false };
    from_either_mates(job, index, kind, Outcome::Draw, salt)
}

fn from_either_mates(
    job: &Job,
    index: u32,
    kind: GameKind,
    outcome: Outcome,
    salt: u32,
) -> GameRecord {
    let start = GameStart {
        fen: Some(EITHER_MATES.to_owned()),
        moves: Vec::new(),
    };
    let moves: &[&str] = match outcome {
        Outcome::White => &["d1d8"],
        Outcome::Draw => &QUEENS,
        Outcome::Black => &["a2a3", "d8d1"],
    };
    record(job, index, kind, start, moves, salt)
}

/// The puzzle game of this index, solved or not.
pub(crate) fn puzzle_game(job: &Job, index: u32, solved: bool) -> GameRecord {
    let Work::Puzzles { puzzles, .. } = &job.work else {
        panic!("no puzzle job")
    };
    let puzzle = puzzles[index as usize].id.clone();
    let outcome = if solved {
        Outcome::White
    } else {
        Outcome::Black
    };
    from_either_mates(
        job,
        index,
        GameKind::Puzzle { puzzle, solved },
        outcome,
        index,
    )
}

/// The two games of a job's pair at `place`, as planned.
pub(crate) fn pair_games(job: &Job, place: usize, plan: PairPlan) -> [GameRecord; 2] {
    let task = &pairs(job)[place];
    [Side::White, Side::Black].map(|candidate| {
        let index = 2 * place as u32 + candidate as u32;
        let kind = GameKind::Match {
            pair: task.pair,
            candidate,
        };
        let color: Color = candidate.into();
        let outcome = match (plan[candidate as usize], color) {
            (Score::Draw, _) => Outcome::Draw,
            (Score::Win, Color::White) | (Score::Loss, Color::Black) => Outcome::White,
            (Score::Loss, Color::White) | (Score::Win, Color::Black) => Outcome::Black,
        };
        from_either_mates(job, index, kind, outcome, task.pair)
    })
}

pub(crate) fn pairs(job: &Job) -> &[PairTask] {
    match &job.work {
        Work::Match { pairs, .. } => pairs,
        other => panic!("no match job: {other:?}"),
    }
}

pub(crate) fn chunk(job: &Job, games: &[GameRecord]) -> Vec<u8> {
    chunk_on(Backend::Uniform, job, games)
}

pub(crate) fn chunk_on(backend: Backend, job: &Job, games: &[GameRecord]) -> Vec<u8> {
    let header = ChunkHeader {
        run: job.run.clone(),
        job: job.id,
        networks: job.work.networks(),
        worker_version: "test".to_owned(),
        backend,
        kind: job.work.kind(),
    };
    encode(&header, games).unwrap()
}

/// A self-play game whose claimed result is not what the board shows.
pub(crate) fn lying(job: &Job, index: u32) -> GameRecord {
    let end = GameEnd {
        result: GameResult::WhiteWins,
        termination: Termination::Threefold,
    };
    GameRecord {
        end,
        ..selfplay(job, index, 7)
    }
}

/// What an auditor finds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Found {
    /// The same searches.
    Same,
    /// Values so far apart that as few positions as a game of eight plies has prove nothing, and
    /// those of three prove it.
    Near,
    /// Other ones.
    Other,
}

/// The chunk of an audit of these games.
pub(crate) fn audit(job: &Job, played: &[GameRecord], found: Found) -> Vec<u8> {
    chunk(job, &again(job, played, found))
}

/// The games of an audit of these games.
pub(crate) fn again(job: &Job, played: &[GameRecord], found: Found) -> Vec<GameRecord> {
    let Work::Audit { tasks, .. } = &job.work else {
        panic!("no audit: {:?}", job.work)
    };
    let again = |(index, task): (u32, &AuditTask)| {
        let game = played.iter().find(|game| game.seed == task.seed).unwrap();
        let (start, moves) = task.parse().unwrap();
        let mut history = start.history().unwrap();
        let mut plies = game.plies[task.first_ply as usize..][..moves.len()].to_vec();
        let chosen = moves.clone();
        for ply in &mut plies {
            match found {
                Found::Same => {}
                Found::Near => ply.root_q += 0.03,
                Found::Other => ply.visits.rotate_right(1),
            }
            history.push(ply.played);
        }
        GameRecord {
            index,
            kind: GameKind::Audit { chosen },
            seed: task.seed,
            start,
            plies,
            end: history
                .end()
                .unwrap_or(GameEnd::draw(Termination::PlyLimit)),
        }
    };
    (0..).zip(tasks).map(again).collect()
}
