//! What verification finds wrong in the games and headers of chunks.

use super::*;

#[test]
fn lies_about_chess_are_found() {
    let mut lies = games(2);
    lies[1].end.termination = Termination::Checkmate;
    assert_eq!(refusal(&lies), (Code::FalseTermination, Some(1), None));
    lies[1].end = crate::chess::GameEnd {
        result: GameResult::WhiteWins,
        termination: Termination::PlyLimit,
    };
    assert_eq!(refusal(&lies), (Code::FalseResult, Some(1), None));
    let mut short = games(1);
    short[0].plies.truncate(10);
    assert_eq!(refusal(&short), (Code::FalseTermination, Some(0), None));
}

#[test]
fn games_without_a_search_are_found() {
    let mut resigning = work(500);
    let Work::SelfPlay { params, .. } = &mut resigning else {
        unreachable!()
    };
    params.resign = Some(ResignParams {
        play_on_share: 0.0,
        ..ResignParams::default()
    });
    let mut resigned = games(3);
    for ply in resigned.iter_mut().flat_map(|game| &mut game.plies) {
        ply.best_q = 0.0;
    }
    resigned[2].plies.truncate(2);
    (resigned[2].plies[1].root_q, resigned[2].plies[1].best_q) = (-0.96, -0.96);
    resigned[2].end = crate::chess::GameEnd {
        result: GameResult::WhiteWins,
        termination: Termination::Resignation,
    };
    assert!(verify_for(&resigned, &resigning).is_ok());
    resigned[2].plies.clear();
    let error = verify_for(&resigned, &resigning).unwrap_err();
    assert_eq!(
        (error.code, error.game),
        (Code::FalseTermination, Some(2)),
        "{error}"
    );
}

#[test]
fn searches_beyond_the_lease_are_found() {
    let mut many = games(2);
    let full = many[0]
        .plies
        .iter()
        .position(|ply| ply.effort == Effort::Full)
        .unwrap();
    many[0].plies[full].visits[0] += 1;
    assert_eq!(
        refusal(&many),
        (Code::TooManyVisits, Some(0), Some(full as u32))
    );
    let mut none = games(1);
    none[0].plies[3].visits.fill(0);
    assert_eq!(refusal(&none), (Code::BadVisits, Some(0), Some(3)));
    let mut target = games(1);
    target[0].plies[full].target.as_mut().unwrap().fill(0);
    assert_eq!(
        refusal(&target),
        (Code::BadTarget, Some(0), Some(full as u32))
    );
    let mut missing = games(1);
    for ply in &mut missing[0].plies {
        ply.target = None;
    }
    assert_eq!(
        refusal(&missing),
        (Code::BadTarget, Some(0), Some(full as u32))
    );
}

/// A single change of what seed and parameters determine is found where it is.
#[test]
fn efforts_visits_and_moves_that_were_not_due_are_found() {
    let honest = games(1);
    for ply in 0..honest[0].plies.len() {
        let changed = |change: fn(&mut PlyRecord)| {
            let mut games = honest.clone();
            change(&mut games[0].plies[ply]);
            refusal(&games)
        };
        let at = |code| (code, Some(0), Some(ply as u32));
        let effort = changed(|ply| {
            (ply.effort, ply.target) = match ply.effort {
                Effort::Full => (Effort::Fast, None),
                Effort::Fast => (Effort::Full, Some(vec![1; ply.visits.len()])),
            }
        });
        assert_eq!(effort, at(Code::WrongEffort));
        let fewer = changed(|ply| {
            let first = ply.visits.iter_mut().find(|n| **n > 0);
            *first.expect("visited") -= 1;
        });
        assert_eq!(fewer, at(Code::TooFewVisits));
        if honest[0].plies[ply].visits.len() > 2 {
            let wished = changed(|ply| {
                let all = ply.visits.iter().sum();
                ply.visits.fill(0);
                ply.visits[0] = all;
            });
            assert_eq!(wished, at(Code::WrongSchedule));
        }
        if honest[0].plies[ply].effort == Effort::Full {
            let heavy = changed(|ply| {
                let target = ply.target.as_mut().expect("full");
                target.fill(u16::MAX);
            });
            assert_eq!(heavy, at(Code::BadTarget));
        }
    }
    let mut played_on = games(1);
    played_on[0].kind = GameKind::SelfPlay { play_on: true };
    assert_eq!(refusal(&played_on), (Code::WrongPlayOn, Some(0), None));
}

/// Fields of other kinds of games.
#[test]
fn fields_that_the_kind_does_not_use_are_refused() {
    let bytes = encode(&header(), &games(1)).unwrap();
    let content = zstd::decode_all(bytes.as_slice()).unwrap();
    let honest = wire::Chunk::decode(content.as_slice()).unwrap();
    let fill: [fn(&mut wire::Game); 5] = [
        |game| game.puzzle = "x".repeat(700_000),
        |game| game.solved = true,
        |game| game.pair = 1,
        |game| game.candidate_black = true,
        |game| game.chosen = vec![0; game.moves.len()],
    ];
    for fill in fill {
        let mut chunk = honest.clone();
        fill(&mut chunk.games[0]);
        let framed = zstd::encode_all(chunk.encode_to_vec().as_slice(), 1).unwrap();
        let error = read(&framed, &Caps::default()).unwrap_err();
        assert_eq!((error.code, error.game), (Code::UnusedField, Some(0)));
    }
    let mut audit = honest;
    audit.header.as_mut().unwrap().kind = wire::Kind::Audit.into();
    audit.games[0].play_on = true;
    let framed = zstd::encode_all(audit.encode_to_vec().as_slice(), 1).unwrap();
    assert_eq!(
        read(&framed, &Caps::default()).unwrap_err().code,
        Code::UnusedField
    );
}

/// A frame has room between its blocks for as much as one likes.
#[test]
fn frames_larger_than_their_content_are_refused() {
    let games = games(1);
    let bytes = encode(&header(), &games).unwrap();
    let content = zstd::decode_all(bytes.as_slice()).unwrap();
    // Magic number; a window of 1 KiB, no checksum; blocks without content; raw ones, the last with its bit.
    let mut padded = vec![0x28, 0xb5, 0x2f, 0xfd, 0x00, 0x50];
    padded.extend([0; 3].repeat(200_000));
    let (blocks, last) = content.split_at(content.len() - content.len() % 1000);
    let block = |bytes: &[u8], last: u32| {
        let header = ((bytes.len() as u32) << 3 | last).to_le_bytes();
        [&header[..3], bytes].concat()
    };
    blocks
        .chunks(1000)
        .for_each(|bytes| padded.extend(block(bytes, 0)));
    padded.extend(block(last, 1));
    assert_eq!(read(&padded, &Caps::default()).unwrap().1, games);
    let work = work(500);
    let lease = Lease {
        run: &run(),
        job: job(),
        seed: testing::SEED,
        work: &work,
        tables: None,
    };
    let error = verify(&padded, &Caps::default(), &lease).unwrap_err();
    assert_eq!((error.code, error.game), (Code::TooLarge, None));
}

#[test]
fn games_that_were_not_leased_are_found() {
    let mut seed = games(1);
    seed[0].seed = Seed(1);
    assert_eq!(refusal(&seed), (Code::WrongSeed, Some(0), None));
    let mut twice = games(2);
    twice[1] = twice[0].clone();
    assert_eq!(refusal(&twice), (Code::DuplicateIndex, Some(1), None));
    let mut index = games(1);
    index[0].index = 500;
    assert_eq!(refusal(&index), (Code::BadIndex, Some(0), None));
    let mut start = games(1);
    start[0].start.fen = Some("rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1".into());
    assert_eq!(refusal(&start), (Code::WrongStart, Some(0), None));
    let mut resigned = games(1);
    resigned[0].plies.truncate(20);
    resigned[0].end = crate::chess::GameEnd {
        result: GameResult::BlackWins,
        termination: Termination::Resignation,
    };
    assert_eq!(
        refusal(&resigned),
        (Code::TerminationNotAllowed, Some(0), None)
    );
}

#[test]
fn headers_are_compared_with_the_lease() {
    let bytes = encode(&header(), &games(1)).unwrap();
    let (run, work) = (run(), work(500));
    let other_run: RunName = "other".parse().unwrap();
    let lease = Lease {
        run: &run,
        job: job(),
        seed: testing::SEED,
        work: &work,
        tables: None,
    };
    let code = |lease: &Lease<'_>| verify(&bytes, &Caps::default(), lease).unwrap_err().code;
    assert_eq!(
        code(&Lease {
            run: &other_run,
            ..lease
        }),
        Code::WrongRun
    );
    assert_eq!(
        code(&Lease {
            job: JobId(uuid::Uuid::nil()),
            ..lease
        }),
        Code::WrongJob
    );
    let Work::SelfPlay { params, .. } = work.clone() else {
        unreachable!()
    };
    let network = crate::ids::ContentHash::of(b"another");
    let other = Work::SelfPlay {
        network,
        games: 500,
        openings: Vec::new(),
        params,
    };
    assert_eq!(
        code(&Lease {
            work: &other,
            ..lease
        }),
        Code::WrongNetworks
    );
    let mut solved = games(1);
    solved[0].kind = GameKind::Puzzle {
        puzzle: "x".into(),
        solved: true,
    };
    let puzzles = ChunkHeader {
        kind: WorkKind::Puzzles,
        ..header()
    };
    let bytes = encode(&puzzles, &solved).unwrap();
    let error = verify(&bytes, &Caps::default(), &lease).unwrap_err();
    assert_eq!(error.code, Code::WrongKind);
}
