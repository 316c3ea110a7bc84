//! Tests of chunks as files; what verification finds in them, and their other forms, have files of their own.

mod exports;
mod lies;

use std::io::Read as _;

use proptest::prelude::*;
use prost::Message as _;

use super::error::ChunkErrorCode as Code;
use super::testing::{games, header, job, run, some_games, verify_for, work};
use super::*;
use crate::chess::{GameResult, Termination};
use crate::ids::{JobId, RunName, Seed};
use crate::params::ResignParams;
use crate::protocol::jobs::{Work, WorkKind};

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
