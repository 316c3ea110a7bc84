//! Games in other formats.

use super::*;

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
