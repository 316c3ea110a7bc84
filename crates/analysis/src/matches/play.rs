//! Playing games: what all commands that do have in common.

use std::io::Write;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use rookery_cli::flags::OutputArgs;
use rookery_cli::{Shutdown, Task};
use rookery_common::chunk::GameRecord;
use rookery_common::chunk::export::pgn::{self, PgnTags};
use rookery_common::command_line::read_params;
use rookery_common::ids::Seed;
use rookery_common::openings::OpeningBook;
use rookery_common::params::{MatchParams, RunParams, SearchParams};

use crate::arena::{MatchPlan, Standing, report};

/// How games are played, and where they are kept.
#[derive(Debug, Clone, clap::Args)]
pub struct PlayArgs {
    /// Search as the section `matches.search` of this run's file says (in a ladder: the network only), with --visits
    /// visits. Its kld_stop.interval is at most half of --visits.
    /// [default: as `uci` searches, with the solver and a policy temperature of 1.36]
    #[arg(long, value_name = "FILE")]
    pub params: Option<PathBuf>,
    /// End a game as a draw after this many plies, not counting those of its opening.
    #[arg(long, value_name = "N", default_value_t = 300)]
    pub ply_limit: u32,
    /// Begin games at the positions of an EPD file, the moves of a PGN file, or a column of either in a
    /// CSV file, also compressed. [default: the built-in book]
    #[arg(long, visible_alias = "book", value_name = "FILE")]
    pub openings: Option<PathBuf>,
    /// The seed of the order of openings, and of all random draws in the games.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Print the result as one JSON object.
    #[arg(long)]
    pub json: bool,
    /// Write the games to this PGN file.
    #[arg(long, value_name = "FILE")]
    pub pgn: Option<PathBuf>,
    /// Whether it may replace one.
    #[command(flatten)]
    pub replace: OutputArgs,
}

impl PlayArgs {
    /// Asks, before anything is played, whether the PGN file may be written.
    pub(super) fn check(&self) -> anyhow::Result<()> {
        let pgn = self.pgn.as_deref();
        pgn.map_or(Ok(()), |path| self.replace.check(path))
    }

    /// How the file, or else the default, says that matches are searched, if it can be done with this number of visits.
    pub(super) fn search(&self, visits: u32) -> anyhow::Result<SearchParams> {
        let Some(path) = &self.params else {
            return Ok(SearchParams::for_strength());
        };
        let search = read_params(path, RunParams::from_text)?.matches.search;
        let played = SearchParams {
            visits,
            ..search.clone()
        };
        let cannot = || {
            format!(
                "cannot search with --visits {visits} as {} says",
                path.display()
            )
        };
        played.check_effect().with_context(cannot)?;
        Ok(search)
    }

    /// A match of this number of games, searched with these parameters.
    pub(super) fn plan(
        &self,
        games: u32,
        concurrency: usize,
        search: SearchParams,
    ) -> anyhow::Result<MatchPlan> {
        let params = MatchParams {
            search,
            ply_limit: self.ply_limit,
            ..MatchParams::default()
        };
        params.check()?;
        let book = match &self.openings {
            Some(path) => book(path)?,
            None => OpeningBook::built_in(),
        };
        let openings = book.openings().len();
        if games as usize / 2 > openings {
            tracing::warn!(
                "{games} games need {} openings for a pair each, and the book has {openings}: players without chance play \
                 the same games again, and intervals are narrower than they should be",
                games / 2
            );
        }
        Ok(MatchPlan {
            pairs: games / 2,
            params,
            book,
            seed: Seed(self.seed),
            sprt: None,
            concurrency,
        })
    }

    /// The PGN file, empty.
    pub(super) fn create_pgn(&self) -> anyhow::Result<Option<PgnFile>> {
        self.pgn.as_deref().map(PgnFile::create).transpose()
    }
}

/// The book of a file; lines that cannot be played are passed over with a warning.
///
/// # Errors
///
/// If the file cannot be read, or has no opening.
pub fn book(path: &Path) -> anyhow::Result<OpeningBook> {
    let bytes = std::fs::read(path)
        .with_context(|| format!("cannot read the openings {}", path.display()))?;
    let read = OpeningBook::from_file(path, &bytes)
        .with_context(|| format!("in the openings {}", path.display()))?;
    for line in &read.passed_over {
        tracing::warn!("in the openings {}: {line}", path.display());
    }
    Ok(read.book)
}

/// Sees every game of a match: shows how it stands, writes the game, and ends the match when the user
/// stops.
pub(super) struct Watcher<'a> {
    pub(super) task: Task,
    pub(super) pgn: Option<&'a mut PgnFile>,
    /// The player whose wins are counted, and its opponent.
    pub(super) names: [&'a str; 2],
    pub(super) shutdown: &'a Shutdown,
}

impl Watcher<'_> {
    pub(super) fn see(
        &mut self,
        game: &GameRecord,
        standing: &Standing,
    ) -> anyhow::Result<ControlFlow<()>> {
        self.task
            .at(standing.tally.games(), &report::line(standing));
        if let Some(pgn) = &mut self.pgn {
            pgn.write(game, self.names)?;
        }
        Ok(self.shutdown.flow())
    }
}

/// A PGN file that grows with the match.
pub(super) struct PgnFile {
    path: PathBuf,
    file: std::fs::File,
}

impl PgnFile {
    fn create(path: &Path) -> anyhow::Result<Self> {
        let file = std::fs::File::create(path);
        let file = file.with_context(|| format!("cannot create {}", path.display()))?;
        Ok(Self {
            path: path.to_owned(),
            file,
        })
    }

    fn write(&mut self, game: &GameRecord, [first, second]: [&str; 2]) -> anyhow::Result<()> {
        let tags = PgnTags {
            event: "Rookery match".to_owned(),
            round: (game.index + 1).to_string(),
            first: first.to_owned(),
            second: second.to_owned(),
            ..PgnTags::default()
        };
        let text = pgn::game(game, &tags)?;
        let written = self.file.write_all(text.as_bytes());
        written.with_context(|| format!("cannot write {}", self.path.display()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bad_book_is_named_with_its_line() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("book.epd");
        std::fs::write(&path, "# mine\n8/8 w - -\n").unwrap();
        let error = format!("{:#}", book(&path).unwrap_err());
        assert!(
            error.contains("book.epd") && error.contains("line 2"),
            "{error}"
        );
    }
}
