//! Positions as Parquet: a row for each searched ply.

use std::io::Write;
use std::sync::Arc;

use anyhow::Context as _;
use parquet::basic::{Compression, ZstdLevel};
use parquet::data_type::{
    BoolType, ByteArray, ByteArrayType, DataType, FloatType, Int32Type, Int64Type,
};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;
use parquet::schema::types::Type;
use rookery_common::chess::moves::{canonical_moves, castling_mode, uci};
use rookery_common::chess::{GameResult, fen};
use rookery_common::chunk::{ChunkHeader, Effort, GameKind, GameRecord, Side};

/// The columns, in Parquet's own notation.
pub const SCHEMA: &str = "message position {
  required int64 chunk;
  required int32 game;
  required int32 ply;
  required binary kind (utf8);
  required binary white_network (utf8);
  required binary black_network (utf8);
  required binary fen (utf8);
  required binary move (utf8);
  required boolean full_search;
  required float root_q;
  required float root_draw;
  required float best_q;
  required binary visits (utf8);
  required int32 result;
  required binary termination (utf8);
}";

/// What the columns mean, for the manifest.
pub const COLUMNS: [(&str, &str); 15] = [
    ("chunk", "the chunk's number in the ledger"),
    ("game", "the game's place in the chunk, from 0"),
    ("ply", "the searched ply, from 0"),
    ("kind", "self-play, puzzles or match"),
    ("white_network", "SHA-256 of the network that plays White"),
    ("black_network", "SHA-256 of the network that plays Black"),
    ("fen", "the position before the move"),
    ("move", "the move that was played, UCI"),
    ("full_search", "whether the search had all its visits"),
    ("root_q", "the root's value for the mover, -1 to 1"),
    ("root_draw", "the root's probability of a draw, 0 to 1"),
    (
        "best_q",
        "the most visited move's value for the mover, -1 to 1",
    ),
    (
        "visits",
        "moves and their visits: `e2e4 12 d2d4 5`; moves without visits are left out",
    ),
    ("result", "1 White won, 0 drawn, -1 Black won"),
    ("termination", "how the game ended"),
];

/// Rows of a row group at least; the games of a chunk stay together.
const GROUP: usize = 100_000;

/// Rows, column by column.
#[derive(Default)]
struct Columns {
    chunk: Vec<i64>,
    game: Vec<i32>,
    ply: Vec<i32>,
    kind: Vec<ByteArray>,
    white: Vec<ByteArray>,
    black: Vec<ByteArray>,
    fen: Vec<ByteArray>,
    played: Vec<ByteArray>,
    full: Vec<bool>,
    root_q: Vec<f32>,
    root_draw: Vec<f32>,
    best_q: Vec<f32>,
    visits: Vec<ByteArray>,
    result: Vec<i32>,
    termination: Vec<ByteArray>,
}

/// Writes positions to a Parquet file.
pub struct PositionWriter<W: Write + Send> {
    file: SerializedFileWriter<W>,
    rows: Columns,
}

impl<W: Write + Send> PositionWriter<W> {
    pub fn new(out: W) -> anyhow::Result<Self> {
        let schema: Arc<Type> = Arc::new(parse_message_type(SCHEMA)?);
        let properties = WriterProperties::builder()
            .set_compression(Compression::ZSTD(ZstdLevel::try_new(6)?))
            .build();
        let file = SerializedFileWriter::new(out, schema, Arc::new(properties))?;
        Ok(Self {
            file,
            rows: Columns::default(),
        })
    }

    /// Adds the games of a chunk, number `sequence` of the ledger.
    pub fn add(
        &mut self,
        sequence: i64,
        header: &ChunkHeader,
        games: &[GameRecord],
    ) -> anyhow::Result<()> {
        for (place, game) in games.iter().enumerate() {
            self.rows.add(sequence, place, header, game)?;
        }
        if self.rows.chunk.len() >= GROUP {
            self.write_group()?;
        }
        Ok(())
    }

    pub fn finish(mut self) -> anyhow::Result<W> {
        if !self.rows.chunk.is_empty() {
            self.write_group()?;
        }
        Ok(self.file.into_inner()?)
    }

    fn write_group(&mut self) -> anyhow::Result<()> {
        let rows = std::mem::take(&mut self.rows);
        let mut group = self.file.next_row_group()?;
        column::<Int64Type, _>(&mut group, &rows.chunk)?;
        column::<Int32Type, _>(&mut group, &rows.game)?;
        column::<Int32Type, _>(&mut group, &rows.ply)?;
        for texts in [
            &rows.kind,
            &rows.white,
            &rows.black,
            &rows.fen,
            &rows.played,
        ] {
            column::<ByteArrayType, _>(&mut group, texts)?;
        }
        column::<BoolType, _>(&mut group, &rows.full)?;
        for numbers in [&rows.root_q, &rows.root_draw, &rows.best_q] {
            column::<FloatType, _>(&mut group, numbers)?;
        }
        column::<ByteArrayType, _>(&mut group, &rows.visits)?;
        column::<Int32Type, _>(&mut group, &rows.result)?;
        column::<ByteArrayType, _>(&mut group, &rows.termination)?;
        group.close()?;
        Ok(())
    }
}

fn column<T: DataType, W: Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    values: &[T::T],
) -> anyhow::Result<()> {
    let mut column = group
        .next_column()?
        .context("the schema has more columns")?;
    column.typed::<T>().write_batch(values, None, None)?;
    column.close()?;
    Ok(())
}

fn text(text: &str) -> ByteArray {
    ByteArray::from(text)
}

impl Columns {
    fn add(
        &mut self,
        chunk: i64,
        place: usize,
        header: &ChunkHeader,
        game: &GameRecord,
    ) -> anyhow::Result<()> {
        let network = |at: usize| {
            let at = at.min(header.networks.len().saturating_sub(1));
            header
                .networks
                .get(at)
                .map(ToString::to_string)
                .unwrap_or_default()
        };
        let white_first = !matches!(
            game.kind,
            GameKind::Match {
                candidate: Side::Black,
                ..
            }
        );
        let (white, black) = if white_first { (0, 1) } else { (1, 0) };
        let (white, black) = (text(&network(white)), text(&network(black)));
        let kind = text(header.kind.name());
        let termination = serde_json::to_value(game.end.termination)?;
        let termination = text(termination.as_str().unwrap_or_default());
        let result = match game.end.result {
            GameResult::WhiteWins => 1,
            GameResult::Draw => 0,
            GameResult::BlackWins => -1,
        };
        let mut history = game.start.history()?;
        let mode = castling_mode(history.start());
        for (number, ply) in game.plies.iter().enumerate() {
            let position = history.position();
            let visited = canonical_moves(position).into_iter().zip(&ply.visits);
            let visits: Vec<String> = visited
                .filter(|(_, visits)| **visits > 0)
                .map(|(m, visits)| format!("{} {visits}", uci(m, mode)))
                .collect();
            self.chunk.push(chunk);
            self.game.push(i32::try_from(place)?);
            self.ply.push(i32::try_from(number)?);
            self.kind.push(kind.clone());
            self.white.push(white.clone());
            self.black.push(black.clone());
            self.fen.push(text(&fen(position)));
            self.played.push(text(&uci(ply.played, mode)));
            self.full.push(ply.effort == Effort::Full);
            self.root_q.push(ply.root_q);
            self.root_draw.push(ply.root_draw);
            self.best_q.push(ply.best_q);
            self.visits.push(text(&visits.join(" ")));
            self.result.push(result);
            self.termination.push(termination.clone());
            history.push(ply.played);
        }
        Ok(())
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use rookery_common::chess::moves::{canonical_moves, parse_uci};
    use rookery_common::chess::{GameEnd, Termination};
    use rookery_common::chunk::{Effort, GameKind, GameRecord, GameStart, PlyRecord};
    use rookery_common::ids::Seed;

    /// A game of these moves, the first `given` of them by its opening. Searches have visited every move once.
    pub(crate) fn record(fen: Option<&str>, given: usize, moves: &str) -> GameRecord {
        let start = GameStart {
            fen: fen.map(str::to_owned),
            moves: Vec::new(),
        };
        let mut game = start.history().unwrap();
        let mut plies = Vec::new();
        for text in moves.split_whitespace() {
            let played = parse_uci(game.position(), text).unwrap();
            plies.push(PlyRecord {
                played,
                effort: Effort::Full,
                visits: vec![1; canonical_moves(game.position()).len()],
                target: None,
                root_q: 0.0,
                root_draw: 0.0,
                best_q: 0.0,
            });
            game.push(played);
        }
        let searched = plies.split_off(given);
        let moves = plies.iter().map(|ply| ply.played).collect();
        GameRecord {
            index: 0,
            kind: GameKind::SelfPlay { play_on: false },
            seed: Seed(1),
            start: GameStart { moves, ..start },
            plies: searched,
            end: game.end().unwrap_or(GameEnd::draw(Termination::PlyLimit)),
        }
    }
}
