//! What `chunk inspect` tells people: a chunk in a dozen lines.

use std::collections::BTreeMap;
use std::io::{self, Write};

use rookery_common::chess::GameResult;
use rookery_common::chunk::{ChunkHeader, Effort, GameKind, GameRecord};
use rookery_common::ids::ContentHash;

/// Sums over a chunk's games.
#[derive(Debug)]
pub(super) struct Summary<'a> {
    header: &'a ChunkHeader,
    hash: ContentHash,
    bytes: usize,
    games: usize,
    positions: usize,
    full: usize,
    visits: u64,
    results: BTreeMap<&'static str, usize>,
    terminations: BTreeMap<&'static str, usize>,
    solved: Option<usize>,
}

impl<'a> Summary<'a> {
    pub(super) fn of(bytes: &[u8], header: &'a ChunkHeader, games: &[GameRecord]) -> Self {
        let plies = || games.iter().flat_map(|game| &game.plies);
        let solved =
            |game: &&GameRecord| matches!(game.kind, GameKind::Puzzle { solved: true, .. });
        let puzzles = games
            .iter()
            .any(|game| matches!(game.kind, GameKind::Puzzle { .. }));
        Self {
            header,
            hash: ContentHash::of(bytes),
            bytes: bytes.len(),
            games: games.len(),
            positions: plies().count(),
            full: plies().filter(|ply| ply.effort == Effort::Full).count(),
            visits: plies()
                .flat_map(|ply| &ply.visits)
                .map(|n| u64::from(*n))
                .sum(),
            results: count(games.iter().map(|game| result_name(game.end.result))),
            terminations: count(games.iter().map(|game| game.end.termination.words())),
            solved: puzzles.then(|| games.iter().filter(solved).count()),
        }
    }

    pub(super) fn write(&self, out: &mut impl Write) -> io::Result<()> {
        let header = self.header;
        let per_position = self.bytes as f64 / self.positions.max(1) as f64;
        let visits = self.visits as f64 / self.positions.max(1) as f64;
        let networks: Vec<_> = header.networks.iter().map(ContentHash::to_string).collect();
        writeln!(out, "chunk         {}", self.hash)?;
        writeln!(
            out,
            "size          {} bytes, {per_position:.1} a position",
            self.bytes
        )?;
        writeln!(out, "run           {}", header.run)?;
        writeln!(out, "job           {} ({})", header.job, header.kind.name())?;
        writeln!(out, "networks      {}", networks.join("\n              "))?;
        writeln!(
            out,
            "worker        {} on {}",
            header.worker_version,
            header.backend.name()
        )?;
        writeln!(out, "games         {}", self.games)?;
        writeln!(
            out,
            "positions     {}, {} searched fully",
            self.positions, self.full
        )?;
        writeln!(out, "visits        {visits:.1} a position")?;
        writeln!(out, "results       {}", listed(&self.results))?;
        writeln!(out, "terminations  {}", listed(&self.terminations))?;
        if let Some(solved) = self.solved {
            writeln!(out, "solved        {solved} of {}", self.games)?;
        }
        Ok(())
    }
}

fn count<'a>(names: impl Iterator<Item = &'a str>) -> BTreeMap<&'a str, usize> {
    names.fold(BTreeMap::new(), |mut counts, name| {
        *counts.entry(name).or_default() += 1;
        counts
    })
}

fn listed(counts: &BTreeMap<&str, usize>) -> String {
    let parts: Vec<_> = counts
        .iter()
        .map(|(name, n)| format!("{name} {n}"))
        .collect();
    parts.join(", ")
}

const fn result_name(result: GameResult) -> &'static str {
    match result {
        GameResult::WhiteWins => "white wins",
        GameResult::BlackWins => "black wins",
        GameResult::Draw => "draws",
    }
}
