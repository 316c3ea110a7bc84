//! Games that are being played, as some workers share them with their heartbeats.
//!
//! A few of each run are kept, in memory alone, until their jobs are over or nothing more is heard of them. All that came
//! is replayed before it is shown. The coordinators of a ledger tell each other by [events](crate::events).

use jiff::{SignedDuration, Timestamp};
use parking_lot::Mutex;
use rookery_common::ids::{JobId, RunName};
use rookery_common::protocol::boards::{LiveBoard, LivePosition, SharedBoard};
use rookery_common::protocol::events::Event;
use rookery_common::protocol::networks::NetworkName;

use crate::app::App;
use crate::db::{Principal, Result};

/// Boards of a run.
const BOARDS: usize = 4;
/// Boards of all runs.
const MOST: usize = 64;
/// How long a board without updates stays.
const SILENCE: SignedDuration = SignedDuration::from_mins(3);
/// After how long without updates a board makes room for any other: one and a half times what a run has between two
/// heartbeats unless its operator says otherwise.
const PATIENCE: SignedDuration = SignedDuration::from_secs(60);
/// After how long a board makes room for a contributor who has none in its run.
const TURN: SignedDuration = SignedDuration::from_mins(10);
/// Least interval between two updates of a board: each goes to every listener. Workers send one in three seconds at most.
const UPDATE_EVERY: SignedDuration = SignedDuration::from_secs(1);
/// Least interval between two jobs that are looked up in the ledger, so that workers that share cost it little.
const LOOK_UP_EVERY: SignedDuration = SignedDuration::from_secs(2);
/// The same for one contributor, so that nobody takes all look-ups.
const OWN_LOOK_UP_EVERY: SignedDuration = SignedDuration::from_secs(30);

/// The boards that people watch.
#[derive(Debug, Default)]
pub struct LiveBoards(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    boards: Vec<Shown>,
    /// The last look-up of each contributor, for as long as it counts.
    look_ups: Vec<(String, Timestamp)>,
}

#[derive(Debug)]
struct Shown {
    board: LiveBoard,
    since: Timestamp,
    heard: Timestamp,
}

impl Shown {
    const fn new(board: LiveBoard, now: Timestamp) -> Self {
        Self {
            board,
            since: now,
            heard: now,
        }
    }
}

impl LiveBoards {
    pub fn of(&self, run: &RunName, now: Timestamp) -> Vec<LiveBoard> {
        let state = self.0.lock();
        let fresh = state
            .boards
            .iter()
            .filter(|shown| is_fresh(shown.heard, now));
        let boards = fresh.map(|shown| &shown.board);
        boards.filter(|board| board.run == *run).cloned().collect()
    }

    /// Takes a board, if there is room for it or it is known already; whether it was taken.
    ///
    /// An update that comes too soon after the last one is not taken. In a full run a board that is silent makes room,
    /// first of all one of the same contributor. Else a board makes room for one of another contributor that has at least
    /// two fewer, and the oldest one after its turn for one that has none.
    pub fn take(&self, board: LiveBoard, now: Timestamp) -> bool {
        let mut state = self.0.lock();
        state.boards.retain(|shown| is_fresh(shown.heard, now));
        let boards = &mut state.boards;
        let is_same = |shown: &&mut Shown| shown.board.job == board.job;
        if let Some(shown) = boards.iter_mut().find(is_same) {
            if is_within(UPDATE_EVERY, shown.heard, now) {
                return false;
            }
            (shown.board, shown.heard) = (board, now);
            return true;
        }
        let of_run = boards.iter().filter(|shown| shown.board.run == board.run);
        if of_run.count() < BOARDS && boards.len() < MOST {
            boards.push(Shown::new(board, now));
            return true;
        }
        let place = silent(boards, &board, now)
            .or_else(|| surplus(boards, &board))
            .or_else(|| turn_is_over(boards, &board, now));
        if let Some(place) = place {
            boards[place] = Shown::new(board, now);
        }
        place.is_some()
    }

    /// Takes the board of a job away; the run in which it was shown.
    pub fn remove(&self, job: JobId) -> Option<RunName> {
        let boards = &mut self.0.lock().boards;
        let place = boards.iter().position(|shown| shown.board.job == job)?;
        Some(boards.remove(place).board.run)
    }

    /// The board of a job as it was heard last.
    fn known(&self, job: JobId) -> Option<LiveBoard> {
        let state = self.0.lock();
        let known = state.boards.iter().find(|shown| shown.board.job == job);
        known.map(|shown| shown.board.clone())
    }

    /// Whether another job of this contributor may be looked up now.
    fn may_look_up(&self, contributor: &str, now: Timestamp) -> bool {
        let mut state = self.0.lock();
        let look_ups = &mut state.look_ups;
        look_ups.retain(|(_, at)| is_within(OWN_LOOK_UP_EVERY, *at, now));
        let may = look_ups
            .iter()
            .all(|(name, at)| name != contributor && !is_within(LOOK_UP_EVERY, *at, now));
        if may {
            look_ups.push((contributor.to_owned(), now));
        }
        may
    }
}

/// How many boards of a run a contributor has.
fn count(boards: &[Shown], run: &RunName, contributor: &str) -> usize {
    let own = |shown: &&Shown| shown.board.run == *run && shown.board.contributor == contributor;
    boards.iter().filter(own).count()
}

/// Where the run's board stands that has been silent longest, if it makes room by that; one of this one's contributor
/// before the others.
fn silent(boards: &[Shown], board: &LiveBoard, now: Timestamp) -> Option<usize> {
    let places = boards.iter().enumerate();
    let silent = places.filter(|(_, shown)| {
        shown.board.run == board.run && !is_within(PATIENCE, shown.heard, now)
    });
    let order = |shown: &Shown| (shown.board.contributor != board.contributor, shown.heard);
    let longest = silent.min_by_key(|(_, shown)| order(shown))?;
    Some(longest.0)
}

/// Where a board of the run stands that makes room for this one: of a contributor with at least two more.
fn surplus(boards: &[Shown], board: &LiveBoard) -> Option<usize> {
    let own = count(boards, &board.run, &board.contributor);
    boards.iter().position(|shown| {
        let known = &shown.board;
        known.run == board.run && count(boards, &board.run, &known.contributor) > own + 1
    })
}

/// Where the run's board stands that has been shown longest, if its turn is over and the contributor of this one has
/// none.
fn turn_is_over(boards: &[Shown], board: &LiveBoard, now: Timestamp) -> Option<usize> {
    if count(boards, &board.run, &board.contributor) > 0 {
        return None;
    }
    let places = boards.iter().enumerate();
    let of_run = places.filter(|(_, shown)| shown.board.run == board.run);
    let (place, oldest) = of_run.min_by_key(|(_, shown)| shown.since)?;
    (!is_within(TURN, oldest.since, now)).then_some(place)
}

fn is_fresh(heard: Timestamp, now: Timestamp) -> bool {
    is_within(SILENCE, heard, now)
}

/// Whether this time has not passed since then. A clock that was set back ends it.
fn is_within(time: SignedDuration, since: Timestamp, now: Timestamp) -> bool {
    (SignedDuration::ZERO..time).contains(&now.duration_since(since))
}

/// Shows a board that came with the heartbeat of a job, if there is room for it.
pub async fn share(
    app: &App,
    contributor: &Principal,
    job: JobId,
    shared: &SharedBoard,
    positions: Vec<LivePosition>,
) -> Result<()> {
    let now = app.clock.now();
    if contributor.restrictions.quarantine.is_some() {
        return Ok(());
    }
    let board = match app.live_boards.known(job) {
        Some(known) => Some(gone_on(known, shared, positions)),
        None if app.live_boards.may_look_up(&contributor.name, now) => {
            introduce(app, contributor, job, shared, positions).await?
        }
        None => None,
    };
    if let Some(board) = board
        && app.live_boards.take(board.clone(), now)
    {
        app.events.publish(Event::Board(board));
    }
    Ok(())
}

/// Takes the board of a job that is over away, and tells those who watch it.
pub fn end(app: &App, job: JobId) {
    if let Some(run) = app.live_boards.remove(job) {
        app.events.publish(Event::BoardEnded { run, job });
    }
}

/// The board with what came now. In a match the networks have the other colours in every second game.
fn gone_on(mut board: LiveBoard, shared: &SharedBoard, positions: Vec<LivePosition>) -> LiveBoard {
    if board.game % 2 != shared.game % 2 {
        std::mem::swap(&mut board.white, &mut board.black);
    }
    LiveBoard {
        game: shared.game,
        positions,
        value: shared.value,
        ..board
    }
}

/// The board of a job that is not known yet; none if all its games have come in.
async fn introduce(
    app: &App,
    contributor: &Principal,
    job: JobId,
    shared: &SharedBoard,
    positions: Vec<LivePosition>,
) -> Result<Option<LiveBoard>> {
    let leased = app.db.leased_job(job).await?;
    let games = leased.work.games();
    if shared.game >= games || leased.games_counted >= games {
        return Ok(None);
    }
    let mut numbers = Vec::new();
    for hash in leased.work.networks() {
        let network = app.db.network(&leased.run, NetworkName::Hash(hash)).await?;
        numbers.push(network.number);
    }
    let [.., last] = numbers[..] else {
        return Ok(None);
    };
    let first = LiveBoard {
        run: leased.run,
        job,
        game: 0,
        contributor: contributor.name.clone(),
        white: numbers[0],
        black: last,
        positions: Vec::new(),
        value: 0,
    };
    Ok(Some(gone_on(first, shared, positions)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rookery_common::ids::NetworkNumber;
    use uuid::Uuid;

    fn board(job: u128, run: &str) -> LiveBoard {
        board_of("ada", job, run)
    }

    fn board_of(contributor: &str, job: u128, run: &str) -> LiveBoard {
        LiveBoard {
            run: run.parse().unwrap(),
            job: JobId(Uuid::from_u128(job)),
            game: 0,
            contributor: contributor.to_owned(),
            white: NetworkNumber(3),
            black: NetworkNumber(2),
            positions: Vec::new(),
            value: 0,
        }
    }

    fn jobs(boards: &LiveBoards, now: Timestamp) -> Vec<u128> {
        let shown = boards.of(&"main".parse().unwrap(), now);
        shown.iter().map(|board| board.job.0.as_u128()).collect()
    }

    #[test]
    fn a_run_has_four_boards_and_one_that_is_silent_makes_room() {
        let boards = LiveBoards::default();
        let start: Timestamp = "2030-01-01T00:00:00Z".parse().unwrap();
        for job in 0..4 {
            assert!(boards.take(board(job, "main"), start));
        }
        assert!(!boards.take(board(4, "main"), start));
        assert!(boards.take(board(5, "other"), start));
        let later = start + PATIENCE;
        let before = later - UPDATE_EVERY;
        for job in [0, 1, 3] {
            assert!(boards.take(board(job, "main"), before), "it is known");
        }
        assert!(!boards.take(board(4, "main"), before));
        assert!(boards.take(board(4, "main"), later));
        assert_eq!(jobs(&boards, later), [0, 1, 4, 3]);
        assert_eq!(jobs(&boards, before + SILENCE), [4]);
    }

    #[test]
    fn a_silent_board_of_the_same_contributor_makes_room_first() {
        let boards = LiveBoards::default();
        let start: Timestamp = "2030-01-01T00:00:00Z".parse().unwrap();
        let taken = [("bob", 0), ("ada", 1), ("bob", 2), ("bob", 3)];
        for (contributor, job) in taken {
            let now = start + UPDATE_EVERY * i32::try_from(job).unwrap();
            assert!(boards.take(board_of(contributor, job, "main"), now));
        }
        let now = start + PATIENCE + UPDATE_EVERY;
        assert!(boards.take(board_of("ada", 4, "main"), now));
        assert_eq!(jobs(&boards, now), [0, 4, 2, 3]);
        assert!(boards.take(board_of("ada", 5, "main"), now));
        assert_eq!(jobs(&boards, now), [5, 4, 2, 3], "the longest silent");
    }

    #[test]
    fn a_board_that_is_removed_makes_room() {
        let boards = LiveBoards::default();
        let now: Timestamp = "2030-01-01T00:00:00Z".parse().unwrap();
        for job in 0..4 {
            assert!(boards.take(board(job, "main"), now));
        }
        let job = |job| JobId(Uuid::from_u128(job));
        assert_eq!(boards.remove(job(2)), Some("main".parse().unwrap()));
        assert_eq!(boards.remove(job(2)), None);
        assert!(boards.take(board(4, "main"), now));
        assert_eq!(jobs(&boards, now), [0, 1, 3, 4]);
    }

    #[test]
    fn nobody_has_all_boards_of_a_run() {
        let boards = LiveBoards::default();
        let now: Timestamp = "2030-01-01T00:00:00Z".parse().unwrap();
        for job in 0..4 {
            assert!(boards.take(board_of("mallory", job, "main"), now));
        }
        assert!(!boards.take(board_of("mallory", 4, "main"), now));
        assert!(boards.take(board_of("ada", 5, "main"), now));
        assert!(boards.take(board_of("ada", 6, "main"), now));
        assert!(!boards.take(board_of("ada", 7, "main"), now));
        assert!(!boards.take(board_of("mallory", 8, "main"), now));
        let shown = boards.of(&"main".parse().unwrap(), now);
        let of = |name| shown.iter().filter(|one| one.contributor == name).count();
        assert_eq!((of("mallory"), of("ada")), (2, 2));
    }

    #[test]
    fn a_few_contributors_do_not_keep_all_boards_for_ever() {
        let boards = LiveBoards::default();
        let start: Timestamp = "2030-01-01T00:00:00Z".parse().unwrap();
        let names = ["a", "b", "c", "d"];
        let update = |now: Timestamp| {
            for (job, name) in (0..).zip(names) {
                boards.take(board_of(name, job, "main"), now);
            }
        };
        (0..10).for_each(|minute| update(start + SignedDuration::from_mins(minute)));
        let before = start + TURN - SignedDuration::from_secs(1);
        update(before);
        assert!(!boards.take(board_of("ada", 9, "main"), before));
        let now = start + TURN;
        assert!(boards.take(board_of("ada", 9, "main"), now));
        assert!(
            !boards.take(board_of("ada", 10, "main"), now),
            "ada has one"
        );
        let shown = boards.of(&"main".parse().unwrap(), now);
        assert_eq!(shown.len(), BOARDS);
        assert!(shown.iter().any(|board| board.contributor == "ada"));
        assert!(
            !shown.iter().any(|board| board.contributor == "a"),
            "the oldest"
        );
    }

    #[test]
    fn updates_are_announced_once_a_second() {
        let boards = LiveBoards::default();
        let start: Timestamp = "2030-01-01T00:00:00Z".parse().unwrap();
        let flood = (0..500).map(|n| start + SignedDuration::from_millis(10 * n));
        let told = flood.filter(|now| boards.take(board(1, "main"), *now));
        assert_eq!(told.count(), 5, "in five seconds");
    }

    #[test]
    fn one_contributor_does_not_take_all_look_ups() {
        let boards = LiveBoards::default();
        let start: Timestamp = "2030-01-01T00:00:00Z".parse().unwrap();
        assert!(boards.may_look_up("mallory", start));
        assert!(!boards.may_look_up("ada", start));
        let later = start + LOOK_UP_EVERY;
        assert!(!boards.may_look_up("mallory", later));
        assert!(boards.may_look_up("ada", later));
        assert!(boards.may_look_up("mallory", start + OWN_LOOK_UP_EVERY));
    }

    #[test]
    fn a_clock_that_is_set_back_holds_nothing_up() {
        let boards = LiveBoards::default();
        let start: Timestamp = "2030-01-01T00:00:00Z".parse().unwrap();
        assert!(boards.may_look_up("ada", start));
        assert!(boards.take(board(1, "main"), start));
        let before = start - SignedDuration::from_hours(1);
        assert!(boards.may_look_up("ada", before));
        assert!(boards.take(board(1, "main"), before));
        assert_eq!(boards.of(&"main".parse().unwrap(), before).len(), 1);
    }

    #[test]
    fn colours_change_from_game_to_game_of_a_match() {
        let shared = |game| SharedBoard {
            game,
            fen: String::new(),
            moves: String::new(),
            value: 5,
        };
        let numbers = |board: &LiveBoard| [board.white.0, board.black.0];
        let second = gone_on(board(1, "main"), &shared(7), Vec::new());
        assert_eq!(numbers(&second), [2, 3]);
        assert_eq!(numbers(&gone_on(second, &shared(9), Vec::new())), [2, 3]);
    }
}
