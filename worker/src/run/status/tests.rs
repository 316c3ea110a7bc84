//! Tests of the status lines.

use rookery_common::ids::NetworkNumber;
use rookery_common::protocol::jobs::NetworkRef;
use rookery_common::protocol::{Problem, ProblemCode};

use super::super::activity::PauseReason;
use super::*;
use crate::shutdown::Shutdown;

fn status() -> Status {
    Status::new(Arc::default(), ActivityHandle::new(Shutdown::default()))
}

/// The lines without a limit.
fn lines(status: &Status) -> [String; 2] {
    status.lines(usize::MAX, None)
}

fn receipt(games: u32, positions: u32) -> ChunkReceipt {
    ChunkReceipt {
        hash: ContentHash::of(b"chunk"),
        sequence: 1,
        games,
        positions,
        duplicate: false,
    }
}

fn unreachable() -> Result<(), ApiError> {
    Err(ApiError::Unreachable("test".into()))
}

#[test]
fn the_lines_tell_what_is_played_and_what_was_uploaded() {
    let status = status();
    let [played, _] = lines(&status);
    assert!(
        played.starts_with("waiting for a job | 0 games"),
        "{played}"
    );
    let mut job = crate::spool::testing::job(3);
    // What a coordinator describes besides is not played.
    let other = NetworkRef {
        hash: ContentHash::of(b"another"),
        number: NetworkNumber(7),
        ..job.networks[0].clone()
    };
    job.networks.insert(0, other);
    let before = status.counts();
    status.set_job(&job);
    status.counters.games.fetch_add(5, Relaxed);
    status.counters.audits.fetch_add(1, Relaxed);
    status.counters.evaluations.fetch_add(1000, Relaxed);
    status.measure(before, 2.0);
    status.set_next_upload(Duration::from_secs(300));
    let [played, uploaded] = lines(&status);
    assert_eq!(
        played,
        "main self-play #0 | 5 games, 1 audit, 0 positions/s, 500 evals/s"
    );
    assert_eq!(uploaded, "uploaded 0 games in 0 chunks, next within 5 min");
}

#[test]
fn a_pause_shows_its_reason_and_no_speed() {
    let status = status();
    let before = status.counts();
    status.set_job(&crate::spool::testing::job(3));
    status.counters.evaluations.fetch_add(1000, Relaxed);
    status.measure(before, 2.0);
    let evals = status.evals_per_second();
    let asked = status.activity.pause(PauseReason::Asked);
    let [played, _] = lines(&status);
    assert_eq!(played, "paused (asked; SIGCONT resumes) | 0 games");
    assert_eq!([evals, status.evals_per_second()], [500.0, 0.0]);
    drop(asked);
    let _disk = status.activity.pause(PauseReason::Disk);
    let [played, _] = status.lines(38, None);
    assert_eq!(played, "paused (disk) | 0 games");
}

#[test]
fn audits_are_counted_apart_from_games() {
    let status = status();
    for _ in 0..2 {
        status.count_upload(WorkKind::Match, &receipt(20, 1600));
        status.count_upload(WorkKind::Audit, &receipt(8, 13));
    }
    let [_, uploaded] = lines(&status);
    assert_eq!(uploaded, "uploaded 40 games, 16 audits in 4 chunks");
    let first = status.uploaded();
    status.count_upload(WorkKind::SelfPlay, &receipt(1, 90));
    assert_eq!(status.uploaded().since(first).words(), "1 game");
}

#[test]
fn who_waits_for_a_coordinator_that_is_away_says_so() {
    let status = status();
    status.set_job(&crate::spool::testing::job(3));
    status.note_request(&unreachable());
    let [played, _] = lines(&status);
    assert!(played.starts_with("main self-play"), "{played}");
    status.clear_job();
    let [played, _] = lines(&status);
    assert!(
        played.starts_with("waiting for the coordinator |"),
        "{played}"
    );
    status.note_request(&Ok(()));
    let [played, _] = lines(&status);
    assert!(played.starts_with("waiting for a job |"), "{played}");
}

#[test]
fn the_lines_promise_no_upload_while_none_succeeds() {
    let status = status();
    status.set_next_upload(Duration::from_secs(5));
    status.note_upload(&unreachable());
    let [_, uploaded] = lines(&status);
    assert!(
        uploaded.ends_with("in 0 chunks, finished games wait for the coordinator"),
        "{uploaded}"
    );
    // What is refused is put aside, and waits for nothing.
    status.note_upload::<()>(&Err(ApiError::Problem {
        problem: Box::new(Problem::new(ProblemCode::ChunkRefused, "test")),
        retry_after: None,
    }));
    let [_, uploaded] = lines(&status);
    assert!(uploaded.contains("in 0 chunks, next within"), "{uploaded}");
}

/// The status of a fast machine that has played for long.
fn busy() -> Status {
    let status = status();
    *status.job.lock() = Some(JobWords {
        run: "main".into(),
        work: "match #1234 vs #1233".into(),
    });
    status.counters.games.store(1_234_567, Relaxed);
    status.evals.store(123_456.0_f64.to_bits(), Relaxed);
    status.positions.store(12_345.0_f64.to_bits(), Relaxed);
    *status.uploaded.lock() = Uploaded {
        games: 123_456,
        audits: 12_345,
        chunks: 1_234,
    };
    status
}

#[test]
fn the_lines_of_a_fast_machine_fit_into_narrow_terminals() {
    let status = busy();
    let download = Download {
        number: NetworkNumber(1234),
        have: 345_000_000,
        bytes: 396_000_000,
    };
    let fit = |columns: usize| {
        for download in [None, Some(download)] {
            for line in status.lines(columns, download) {
                assert!(line.len() <= columns, "{columns}: {line}");
            }
        }
    };
    for columns in [38, 48, 78, 118] {
        fit(columns);
        let [played, _] = status.lines(columns, None);
        assert!(played.contains("123456 evals/s"), "{columns}: {played}");
    }
    status.note_upload(&unreachable());
    [38, 48, 78, 118].into_iter().for_each(fit);
    let [_, waits] = status.lines(38, None);
    assert_eq!(waits, "games wait for the coordinator");
    let [_, fetching] = status.lines(78, Some(download));
    assert!(
        fetching.ends_with("| fetching network #1234: 345 of 396 MB"),
        "{fetching}"
    );
    status.set_left(1024);
    [38, 48, 78, 118].into_iter().for_each(fit);
}

#[test]
fn a_wide_terminal_gets_all_there_is() {
    let status = busy();
    let [played, _] = status.lines(118, None);
    assert_eq!(
        played,
        "main match #1234 vs #1233 | 1234567 games, 12345 positions/s, 123456 evals/s"
    );
    let [played, _] = status.lines(48, None);
    assert_eq!(played, "match #1234 vs #1233 | 123456 evals/s");
}

#[test]
fn the_lines_tell_how_many_games_are_left_before_the_end() {
    let status = status();
    status.set_next_upload(Duration::from_secs(300));
    for (games, said) in [
        (41, "ending, 41 games left | 0 games, "),
        (1, "ending, 1 game left | "),
        (0, "uploading, then ending |"),
    ] {
        status.set_left(games);
        let [played, uploaded] = lines(&status);
        assert!(played.starts_with(said), "{played}");
        assert!(uploaded.ends_with("in 0 chunks, the rest at the end"));
    }
}
