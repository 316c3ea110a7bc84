use proptest::prelude::*;
use prost::Message as _;

use super::error::ChunkErrorCode as Code;
use super::testing::{games, header, job, run, some_games, verify_for, work};
use super::*;
use crate::chess::{GameResult, Termination};
use crate::ids::{JobId, RunName, Seed};
use crate::params::ResignParams;
use crate::protocol::jobs::Work;

fn verify_games(games: &[GameRecord]) -> Result<VerifiedChunk, ChunkError> {
    verify_for(games, &work(500))
}

fn refusal(games: &[GameRecord]) -> (Code, Option<u32>, Option<u32>) {
    let error = verify_games(games).unwrap_err();
    (error.code, error.game, error.ply)
}

#[test]
fn an_honest_chunk_passes() {
    let games = games(3);
    let verified = verify_games(&games).unwrap();
    assert_eq!(verified.games.len(), 3);
    assert_eq!(
        verified.positions as usize,
        games.iter().map(|g| g.plies.len()).sum::<usize>()
    );
}

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
}

#[test]
fn caps_hold_against_bombs() {
    let bomb = zstd::encode_all(std::io::repeat(0x12).take(300 << 20).by_ref(), 19).unwrap();
    assert!(bomb.len() < 1 << 20);
    let error = read(&bomb, &Caps::default()).unwrap_err();
    assert!(
        matches!(error.code, Code::BadSchema | Code::TooLarge),
        "{error}"
    );
    let mut message = vec![0x0a, 0xff, 0xff, 0xff, 0xff, 0x07];
    message.extend(vec![0; 1000]);
    let lying = zstd::encode_all(message.as_slice(), 3).unwrap();
    assert_eq!(
        read(&lying, &Caps::default()).unwrap_err().code,
        Code::TooLarge
    );
    let honest = encode(&header(), &games(3)).unwrap();
    let small = Caps {
        decompressed_bytes: 5000,
        ..Caps::default()
    };
    assert_eq!(read(&honest, &small).unwrap_err().code, Code::TooLarge);
    let tiny = Caps {
        compressed_bytes: 100,
        ..Caps::default()
    };
    assert_eq!(read(&honest, &tiny).unwrap_err().code, Code::TooLarge);
    let few = Caps {
        games: 2,
        ..Caps::default()
    };
    assert_eq!(read(&honest, &few).unwrap_err().code, Code::TooLarge);
}

#[test]
fn games_are_passed_over_without_being_parsed() {
    let all = games(3);
    let bytes = encode(&header(), &all).unwrap();
    for (place, game) in all.iter().enumerate() {
        let mut reader = ChunkReader::open(&bytes, &Caps::default()).unwrap();
        for _ in 0..place {
            assert!(reader.skip_game().unwrap());
        }
        assert_eq!(reader.next_game().unwrap().as_ref(), Some(game));
        for _ in place + 1..all.len() {
            assert!(reader.skip_game().unwrap());
        }
        assert!(!reader.skip_game().unwrap());
    }
    let mut odd = Vec::new();
    prost::encoding::message::encode(1, &header().to_wire(), &mut odd);
    let content = zstd::decode_all(bytes.as_slice()).unwrap();
    let (_, games) = content.split_at(odd.len());
    odd.extend([0x12, 2, 0xff, 0xff]);
    odd.extend(games);
    let framed = zstd::encode_all(odd.as_slice(), 1).unwrap();
    let error = read(&framed, &Caps::default()).unwrap_err();
    assert_eq!((error.code, error.game), (Code::BadSchema, Some(0)));
    let mut reader = ChunkReader::open(&framed, &Caps::default()).unwrap();
    assert!(reader.skip_game().unwrap());
    assert_eq!(reader.next_game().unwrap().as_ref(), Some(&all[0]));
    let few = Caps {
        games: 1,
        ..Caps::default()
    };
    let mut reader = ChunkReader::open(&bytes, &few).unwrap();
    assert!(reader.skip_game().unwrap());
    assert_eq!(reader.skip_game().unwrap_err().code, Code::TooLarge);
}

/// An unchecked field could carry anything to the readers of chunks.
#[test]
fn fields_that_are_not_known_are_refused() {
    let bytes = encode(&header(), &games(1)).unwrap();
    let content = zstd::decode_all(bytes.as_slice()).unwrap();
    let honest = header().to_wire().encode_to_vec();
    let game = wire::Chunk::decode(content.as_slice()).unwrap().games[0].encode_to_vec();
    // Field 1000 with one byte.
    let payload = [0xc2, 0x3e, 1, b'x'];
    let chunk = |header: &[u8], game: &[u8]| {
        let mut content = Vec::new();
        for (tag, message) in [(1, header), (2, game)] {
            prost::encoding::bytes::encode(tag, &message.to_vec(), &mut content);
        }
        zstd::encode_all(content.as_slice(), 1).unwrap()
    };
    let read = |header: &[u8], game: &[u8]| read(&chunk(header, game), &Caps::default());
    assert_eq!(read(&honest, &game).unwrap().1, games(1));
    let error = read(&[&honest[..], &payload].concat(), &game).unwrap_err();
    assert_eq!((error.code, error.game), (Code::BadSchema, None));
    let error = read(&honest, &[&game[..], &payload].concat()).unwrap_err();
    assert_eq!((error.code, error.game), (Code::BadSchema, Some(0)));
    let twice = read(&[&honest[..], &honest].concat(), &game).unwrap_err();
    assert_eq!(twice.code, Code::BadSchema);
}

#[test]
fn cut_or_lengthened_chunks_are_refused() {
    let bytes = encode(&header(), &games(1)).unwrap();
    for length in 0..bytes.len() {
        assert!(
            read(&bytes[..length], &Caps::default()).is_err(),
            "{length} bytes"
        );
    }
    let mut longer = bytes;
    longer.push(0);
    assert_eq!(
        read(&longer, &Caps::default()).unwrap_err().code,
        Code::BadCompression
    );
}

#[test]
fn v6_records_have_lc0s_size_and_probabilities() {
    let games = games(1);
    let plies = games[0].plies.iter();
    let full: Vec<_> = plies.filter(|ply| ply.effort == Effort::Full).collect();
    let bytes = export::v6::game(&games[0]).unwrap();
    assert_eq!(bytes.len(), full.len() * export::v6::RECORD_BYTES);
    let (floats, _) = bytes[8..8 + 1858 * 4].as_chunks::<4>();
    let legal: Vec<f32> = floats
        .iter()
        .map(|b| f32::from_le_bytes(*b))
        .filter(|p| *p >= 0.0)
        .collect();
    assert_eq!(legal.len(), full[0].visits.len());
    assert!((legal.iter().sum::<f32>() - 1.0).abs() < 1e-5);
}

/// As lc0 marks its own: bit 5 where the rules did not end the game, bit 4 where it was too long.
#[test]
fn v6_records_say_how_games_ended_early() {
    for (termination, bits) in [
        (Termination::Checkmate, 0),
        (Termination::Resignation, 0b10_0000),
        (Termination::Adjudication, 0b10_0000),
        (Termination::PlyLimit, 0b11_0000),
    ] {
        let mut game = testing::game(0);
        game.end.termination = termination;
        let bytes = export::v6::game(&game).unwrap();
        let mut info = bytes
            .chunks(export::v6::RECORD_BYTES)
            .map(|record| record[8278]);
        assert!(info.all(|info| info == bits), "{termination:?}");
    }
}

#[test]
fn pgn_is_read_back_by_another_program() {
    use pgn_reader::{RawTag, Reader, SanPlus, Skip, Visitor};
    use shakmaty::Position;
    use std::ops::ControlFlow;

    struct Replay;
    impl Visitor for Replay {
        type Tags = ();
        type Movetext = (shakmaty::Chess, usize);
        type Output = usize;
        fn begin_tags(&mut self) -> ControlFlow<usize, ()> {
            ControlFlow::Continue(())
        }
        fn tag(&mut self, (): &mut (), name: &[u8], value: RawTag<'_>) -> ControlFlow<usize> {
            assert!(name != b"Result" || value.as_bytes() == b"1/2-1/2");
            ControlFlow::Continue(())
        }
        fn begin_movetext(&mut self, (): ()) -> ControlFlow<usize, Self::Movetext> {
            ControlFlow::Continue((shakmaty::Chess::default(), 0))
        }
        fn san(&mut self, game: &mut Self::Movetext, san: SanPlus) -> ControlFlow<usize> {
            let m = san.san.to_move(&game.0).expect("a legal move");
            game.0.play_unchecked(m);
            game.1 += 1;
            ControlFlow::Continue(())
        }
        fn begin_variation(&mut self, _: &mut Self::Movetext) -> ControlFlow<usize, Skip> {
            ControlFlow::Continue(Skip(true))
        }
        fn end_game(&mut self, game: Self::Movetext) -> usize {
            game.1
        }
    }
    let games = games(1);
    let pgn = export::pgn::game(&games[0], &export::pgn::PgnTags::default()).unwrap();
    let plies = Reader::new(pgn.as_bytes()).read_game(&mut Replay).unwrap();
    assert_eq!(plies, Some(games[0].plies.len()), "{pgn}");
}

#[test]
fn json_shows_every_move() {
    let games = games(2);
    let json = export::json::chunk(&header(), &games).unwrap();
    assert_eq!(json.games[1].moves.len(), games[1].plies.len());
    assert_eq!(json.positions, games[0].plies.len() + games[1].plies.len());
    let text = serde_json::to_string(&json).unwrap();
    assert_eq!(
        serde_json::from_str::<export::json::ChunkJson>(&text).unwrap(),
        json
    );
}

use std::io::Read as _;

#[test]
fn versions_that_no_ledger_can_hold_are_refused() {
    for version in ["0.1\0", "0.1\n", "\u{202e}1.0", &"1".repeat(65)] {
        let header = ChunkHeader {
            worker_version: version.to_owned(),
            ..header()
        };
        let bytes = encode(&header, &games(1)).unwrap();
        let error = read(&bytes, &Caps::default()).unwrap_err();
        assert_eq!(error.code, Code::BadSchema, "{version:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn games_round_trip(games in some_games()) {
        let bytes = encode(&header(), &games).unwrap();
        let (read_header, read_games) = read(&bytes, &Caps::default()).unwrap();
        prop_assert_eq!(read_header, header());
        prop_assert_eq!(read_games, games);
    }

    #[test]
    fn any_bytes_are_an_error(bytes: Vec<u8>) {
        prop_assert!(read(&bytes, &Caps::default()).is_err());
        let framed = zstd::encode_all(bytes.as_slice(), 1).unwrap();
        prop_assert!(read(&framed, &Caps::default()).is_err());
    }

    /// A changed byte of the content is refused, or changes nothing but what is free to choose.
    #[test]
    fn changed_content_never_panics(at: prop::sample::Index, byte: u8) {
        let bytes = encode(&header(), &games(1)).unwrap();
        let mut content = zstd::decode_all(bytes.as_slice()).unwrap();
        let at = at.index(content.len());
        content[at] = byte;
        let framed = zstd::encode_all(content.as_slice(), 1).unwrap();
        if let Ok((_, games)) = read(&framed, &Caps::default()) {
            prop_assert!(games.len() <= 1);
        }
    }
}
