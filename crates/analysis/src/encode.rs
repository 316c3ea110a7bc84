//! The command `encode`: how positions and moves look to a network.

use std::collections::BTreeMap;
use std::process::ExitCode;

use clap::Args;
use rookery_cli::flags::named;
use rookery_common::chess::GameHistory;
use rookery_common::chess::moves::canonical_moves;
use rookery_common::encoding::{InputEncoding, PolicyEncoding};
use serde::Serialize;

use crate::lines::answer_lines;
use crate::position_line::Notation;

/// Flags of `encode`.
#[derive(Debug, Clone, Args)]
pub struct EncodeArgs {
    /// The input encoding: lc0-112, az-119 or classic-19.
    #[arg(long, default_value = "lc0-112", value_name = "NAME")]
    #[arg(value_parser = named(InputEncoding::ALL, InputEncoding::name))]
    pub input: InputEncoding,
    /// The policy encoding: lc0-1858, az-73 or flat-1968.
    #[arg(long, default_value = "lc0-1858", value_name = "NAME")]
    #[arg(value_parser = named(PolicyEncoding::ALL, PolicyEncoding::name))]
    pub policy: PolicyEncoding,
    /// Write castling as king takes rook.
    #[arg(long)]
    pub chess960: bool,
}

/// One position as networks of these encodings see it.
#[derive(Debug, PartialEq, Serialize)]
pub struct Encoded {
    /// Every plane in order, bit 0 being a1 as the mover sees the board, as 16 hexadecimal digits.
    /// A plane filled with a number other than 0 or 1 is written as zeros.
    pub planes: Vec<String>,
    /// The numbers that fill planes, by plane.
    pub scalars: BTreeMap<usize, f32>,
    /// The legal moves with their policy indices.
    pub moves: BTreeMap<String, u16>,
}

/// Encodes the position on the board.
pub fn encode(
    game: &GameHistory,
    input: InputEncoding,
    policy: PolicyEncoding,
    notation: Notation,
) -> Encoded {
    let packed = input.encode(game);
    let filled = |value: f32| if value == 1.0 { u64::MAX } else { 0 };
    let planes = packed
        .binary
        .iter()
        .copied()
        .chain(packed.scalars.iter().copied().map(filled));
    let first_scalar = input.binary_planes();
    let moves = canonical_moves(game.position());
    Encoded {
        planes: planes.map(|plane| format!("{plane:016x}")).collect(),
        scalars: (first_scalar..)
            .zip(packed.scalars.iter().copied())
            .collect(),
        moves: moves
            .into_iter()
            .map(|m| (notation.write(game, m), policy.index(m, game.turn())))
            .collect(),
    }
}

/// Answers standard input, line by line.
///
/// # Errors
///
/// If standard input or output fails.
pub fn run(args: &EncodeArgs) -> anyhow::Result<ExitCode> {
    let notation = Notation::from_flag(args.chess960);
    let output = std::io::BufWriter::new(std::io::stdout().lock());
    answer_lines(std::io::stdin().lock(), output, |game| {
        Ok(encode(game, args.input, args.policy, notation))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::position_line;

    #[test]
    fn the_start_position_is_as_the_tables_say() {
        let game = position_line::parse("startpos").unwrap();
        let encoded = encode(
            &game,
            InputEncoding::Lc0112,
            PolicyEncoding::Lc01858,
            Notation::ByPosition,
        );
        assert_eq!(encoded.planes.len(), 112);
        assert_eq!(encoded.planes[0], "000000000000ff00", "own pawns");
        assert_eq!(encoded.planes[6], "00ff000000000000", "their pawns");
        assert_eq!(encoded.planes[13], "0".repeat(16), "no history");
        assert_eq!(encoded.planes[104], "f".repeat(16), "castling");
        assert_eq!(encoded.planes[111], "f".repeat(16), "ones");
        assert_eq!(
            encoded.scalars.keys().copied().collect::<Vec<_>>(),
            (104..112).collect::<Vec<_>>()
        );
        assert_eq!(encoded.moves.len(), 20);
        assert_eq!(encoded.moves["e2e4"], 322, "place in Lc0's list");
    }
}
