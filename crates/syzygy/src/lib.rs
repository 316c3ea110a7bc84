//! Syzygy endgame tables (Ronald de Man), read by `shakmaty-syzygy`.
//!
//! Workers end games by them where a run wants it, and the coordinator checks such ends where its
//! operator has tables too. A crate of its own, because both need it and `rookery-common` reads no
//! files but the programs' configuration.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use rookery_common::chess::{EndgameTables, GameResult, TableMoves};
use shakmaty::{Chess, Move, Position as _};
use shakmaty_syzygy::{Dtz, SyzygyError, Tablebase, Wdl};

use folder::Files;
use prospect::Prospect;

mod folder;
mod prospect;

/// Tables from one or several folders: files for win, draw and loss (`.rtbw`), and for the distance
/// to the next capture or pawn move (`.rtbz`), which only [`best_moves`](EndgameTables::best_moves)
/// needs.
#[derive(Debug)]
pub struct Syzygy {
    tables: Tablebase<Chess>,
    files: usize,
    problems: Vec<String>,
    /// A table that cannot be read is reported once.
    told: AtomicBool,
}

impl Syzygy {
    /// Finds the tables of these folders; they are read when they are needed. A folder or file that cannot be
    /// used is one of the [`problems`](Self::problems), and the others are used.
    ///
    /// # Errors
    ///
    /// If no table can be used.
    pub fn open(folders: &[PathBuf]) -> anyhow::Result<Self> {
        let mut files = Files::default();
        for folder in folders {
            files.add_folder(folder);
        }
        let problems = files.problems();
        anyhow::ensure!(
            files.count > 0,
            "RK-0011: no endgame table can be used: {}",
            problems.join("; ")
        );
        Ok(Self {
            tables: files.tables,
            files: files.count,
            problems,
            told: AtomicBool::new(false),
        })
    }

    /// The folders and files that cannot be used, each with the reason.
    pub fn problems(&self) -> &[String] {
        &self.problems
    }

    /// How many files there are.
    pub const fn files(&self) -> usize {
        self.files
    }

    /// Most pieces of a position that they hold.
    pub fn pieces(&self) -> usize {
        self.tables.max_pieces()
    }

    /// What tables expect after each legal move.
    fn prospects(&self, position: &Chess) -> Result<Vec<(Move, Prospect)>, SyzygyError> {
        let moves = position.legal_moves();
        let prospect = |m: &Move| {
            let mut after = position.clone();
            after.play_unchecked(*m);
            let distance = if after.is_checkmate() {
                Dtz(1)
            } else if after.halfmoves() == 0 {
                Dtz::before_zeroing(-self.tables.probe_wdl_after_zeroing(&after)?)
            } else {
                -self
                    .tables
                    .probe_dtz(&after)?
                    .ignore_rounding()
                    .add_plies_saturating(1)
            };
            Ok((*m, Prospect::new(distance, position.halfmoves())))
        };
        moves.iter().map(prospect).collect()
    }

    fn tell(&self, error: &SyzygyError) {
        // Tables of some kinds of pieces need not be there.
        let missing = matches!(error, SyzygyError::MissingTable { .. });
        if !missing && !self.told.swap(true, Ordering::Relaxed) {
            let error = error.to_string();
            // Some of these errors print a backtrace, too.
            let error = error.lines().next().unwrap_or_default();
            tracing::warn!(
                "RK-0011: an endgame table cannot be used: {error}; games are played on"
            );
        }
    }
}

impl EndgameTables for Syzygy {
    fn result(&self, position: &Chess) -> Option<GameResult> {
        if position.board().occupied().count() > self.pieces() {
            return None;
        }
        let probed = self.tables.probe_wdl_after_zeroing(position);
        let wdl = probed.inspect_err(|error| self.tell(error)).ok()?;
        Some(match wdl {
            Wdl::Win => GameResult::win_of(position.turn()),
            Wdl::Loss => GameResult::win_of(!position.turn()),
            // Wins that the fifty-move rule makes draws are draws.
            Wdl::BlessedLoss | Wdl::Draw | Wdl::CursedWin => GameResult::Draw,
        })
    }

    fn best_moves(&self, position: &Chess) -> Option<TableMoves> {
        let held = position.board().occupied().count() <= self.pieces();
        if !held || position.castles().any() {
            return None;
        }
        let prospects = self.prospects(position);
        let prospects = prospects.inspect_err(|error| self.tell(error)).ok()?;
        let best = prospects.iter().map(|(_, prospect)| *prospect).max()?;
        let equal = prospects.iter().filter(|(_, prospect)| *prospect == best);
        Some(TableMoves {
            result: best.result(position.turn()),
            moves: equal.map(|(m, _)| *m).collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use rookery_common::chess::GameHistory;
    use shakmaty::{Board, CastlingMode, Color, FromSetup, Piece, Role, Setup, Square};

    use super::*;

    /// A table of king and a piece against king in which each side to move has one value, 0 (a
    /// loss) to 4 (a win): the format's header, the order of pieces, and twice the flag "single
    /// value" with it.
    ///
    /// For a queen or a rook that is the whole truth about positions in which the game goes on:
    /// the side with the piece wins, and what Black gains by taking it is not for the table to say
    /// but is found by the probing program itself.
    fn table(piece: Role, stronger: u8, weaker: u8) -> Vec<u8> {
        let codes = |code: u8| code | code << 4;
        let (king, bare) = (codes(6), codes(14));
        let piece = codes(piece as u8);
        let mut bytes = vec![0x71, 0xe8, 0x23, 0x5d, 0x01, 0x00, king, bare, piece];
        bytes.push(0);
        bytes.extend([0x80, stronger, 0x80, weaker]);
        bytes.resize(64 + 16, 0);
        bytes
    }

    fn tables(files: &[(&str, Vec<u8>)]) -> (tempfile::TempDir, anyhow::Result<Syzygy>) {
        let folder = tempfile::tempdir().unwrap();
        for (name, bytes) in files {
            std::fs::write(folder.path().join(name), bytes).unwrap();
        }
        let tables = Syzygy::open(&[folder.path().to_owned()]);
        (folder, tables)
    }

    fn position(fen: &str) -> Chess {
        GameHistory::from_fen(fen).unwrap().position().clone()
    }

    /// Every legal position of White's king and queen against Black's king, with Black to move.
    fn queen_positions() -> impl Iterator<Item = Chess> {
        let squares = || Square::ALL.into_iter();
        let all = squares().flat_map(move |king| {
            squares().flat_map(move |queen| squares().map(move |bare| (king, queen, bare)))
        });
        all.filter(|(king, queen, bare)| king != queen && king != bare && queen != bare)
            .filter_map(|(king, queen, bare)| {
                let mut board = Board::empty();
                let piece = |color, role| Piece { color, role };
                board.set_piece_at(king, piece(Color::White, Role::King));
                board.set_piece_at(queen, piece(Color::White, Role::Queen));
                board.set_piece_at(bare, piece(Color::Black, Role::King));
                let mut setup = Setup::empty();
                setup.board = board;
                setup.turn = Color::Black;
                Chess::from_setup(setup, CastlingMode::Standard).ok()
            })
    }

    #[test]
    fn a_queen_wins_unless_it_is_taken() {
        let (_folder, tables) = tables(&[("KQvK.rtbw", table(Role::Queen, 4, 0))]);
        let tables = tables.unwrap();
        assert_eq!((tables.files(), tables.pieces()), (1, 3));
        let (mut won, mut drawn) = (0, 0);
        for position in queen_positions().filter(|position| !position.is_game_over()) {
            let taken = position.legal_moves().iter().any(|m| m.is_capture());
            let expected = if taken {
                GameResult::Draw
            } else {
                GameResult::WhiteWins
            };
            assert_eq!(tables.result(&position), Some(expected), "{position:?}");
            *(if taken { &mut drawn } else { &mut won }) += 1;
        }
        assert!(won > 100_000 && drawn > 1000, "{won} and {drawn}");
        let result = |fen| tables.result(&position(fen));
        let (white, black) = (Some(GameResult::WhiteWins), Some(GameResult::BlackWins));
        assert_eq!(result("8/8/8/4k3/8/8/Q7/7K w - - 0 1"), white);
        assert_eq!(
            result("8/8/8/4K3/8/8/q7/7k w - - 0 1"),
            black,
            "colours swapped"
        );
        assert_eq!(result("8/8/8/4K3/8/8/q7/7k b - - 0 1"), black);
    }

    #[test]
    fn what_the_tables_do_not_hold_they_do_not_judge() {
        let (_folder, tables) = tables(&[("KQvK.rtbw", table(Role::Queen, 4, 0))]);
        let tables = tables.unwrap();
        for fen in [
            "8/8/8/4k3/8/8/R7/7K w - - 0 1",
            "8/8/8/4k3/8/Q7/Q7/7K w - - 0 1",
            "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1",
        ] {
            assert_eq!(tables.result(&position(fen)), None);
        }
    }

    #[test]
    fn without_distances_they_know_no_moves() {
        let (_folder, tables) = tables(&[("KQvK.rtbw", table(Role::Queen, 4, 0))]);
        let tables = tables.unwrap();
        for fen in [
            "8/8/8/4k3/8/8/Q7/7K w - - 0 1",
            "7k/8/5K2/6Q1/8/8/8/8 w - - 0 1",
            "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1",
        ] {
            assert_eq!(tables.best_moves(&position(fen)), None);
        }
    }

    #[test]
    fn moves_that_all_capture_need_no_distances() {
        let (_folder, tables) = tables(&[("KQvK.rtbw", table(Role::Queen, 4, 0))]);
        let checked = position("7k/6Q1/8/8/8/8/8/K7 b - - 30 40");
        let known = tables.unwrap().best_moves(&checked).unwrap();
        assert_eq!(known.result, GameResult::Draw);
        assert_eq!(known.moves, checked.legal_moves().to_vec());
    }

    #[test]
    fn castling_is_nothing_for_tables() {
        let (_folder, tables) = tables(&[("KRvK.rtbw", table(Role::Rook, 4, 0))]);
        let tables = tables.unwrap();
        let castling = position("8/8/8/4k3/8/8/8/4K2R w K - 0 1");
        assert_eq!(tables.best_moves(&castling), None);
        assert!(
            !tables.told.load(Ordering::Relaxed),
            "nothing is wrong with them"
        );
    }

    #[test]
    fn wins_that_come_too_late_are_draws() {
        let (_folder, tables) = tables(&[("KRvK.rtbw", table(Role::Rook, 3, 1))]);
        let tables = tables.unwrap();
        for turn in ["w", "b"] {
            let fen = format!("8/8/8/4k3/8/8/R7/7K {turn} - - 0 1");
            assert_eq!(tables.result(&position(&fen)), Some(GameResult::Draw));
        }
    }

    #[test]
    fn folders_without_sound_tables_are_refused() {
        let error = |files: &[(&str, Vec<u8>)]| {
            let (_folder, tables) = tables(files);
            format!("{:#}", tables.unwrap_err())
        };
        assert!(error(&[]).contains("no Syzygy tables in"));
        assert!(error(&[("readme.txt", vec![1])]).contains("no Syzygy tables in"));
        let mut cut = table(Role::Queen, 4, 0);
        cut.pop();
        let said = error(&[("KQvK.rtbw", cut)]);
        assert!(
            said.contains("KQvK.rtbw") && said.contains("79 bytes"),
            "{said}"
        );
        let mut other = table(Role::Queen, 4, 0);
        other[0] = 0;
        let said = error(&[("KQvK.rtbw", other)]);
        assert!(
            said.contains("KQvK.rtbw") && said.contains("no Syzygy table"),
            "{said}"
        );
        let nothing = Syzygy::open(&["/there/is/nothing".into()]).unwrap_err();
        assert!(
            nothing.to_string().contains("/there/is/nothing"),
            "{nothing}"
        );
    }

    #[test]
    fn sound_tables_are_used_beside_bad_ones_which_are_named() {
        let folder = tempfile::tempdir().unwrap();
        let empty = tempfile::tempdir().unwrap();
        let write = |name: &str, bytes: &[u8]| {
            std::fs::write(folder.path().join(name), bytes).unwrap();
        };
        let sound = table(Role::Queen, 4, 0);
        write("KQvK.rtbw", &sound);
        write("KRvK.rtbw", &sound[..40]);
        write("KBvK.rtbw", b"");
        write("KNvK.rtbw", &[b"<html>".as_slice(), &[b' '; 10]].concat());
        write("KQvK.rtbz", &sound);
        std::fs::create_dir(folder.path().join("KPvK.rtbw")).unwrap();
        let folders = [
            PathBuf::from("/there/is/nothing"),
            empty.path().to_owned(),
            folder.path().to_owned(),
        ];
        let tables = Syzygy::open(&folders).unwrap();
        assert_eq!((tables.files(), tables.pieces()), (1, 3));
        let won = position("8/8/8/4k3/8/8/Q7/7K w - - 0 1");
        assert_eq!(tables.result(&won), Some(GameResult::WhiteWins));
        let said = tables.problems();
        for (name, why) in [
            ("/there/is/nothing", "No such file"),
            (empty.path().to_str().unwrap(), "no Syzygy tables"),
            ("KRvK.rtbw", "40 bytes"),
            ("KBvK.rtbw", "0 bytes"),
            ("KNvK.rtbw", "no Syzygy table of wins"),
            ("KQvK.rtbz", "no Syzygy table of distances"),
            ("KPvK.rtbw", "not a file"),
        ] {
            let named = |problem: &&String| problem.contains(name);
            let problem = said.iter().find(named);
            let problem = problem.unwrap_or_else(|| panic!("{name} in {said:?}"));
            assert!(problem.contains(why), "{problem}");
        }
        assert_eq!(said.len(), 7, "{said:?}");
    }

    #[test]
    fn many_bad_files_are_counted_and_not_listed() {
        let folder = tempfile::tempdir().unwrap();
        let pieces = ["Q", "R", "B", "N"];
        for (a, b) in pieces.iter().flat_map(|a| pieces.map(|b| (a, b))) {
            std::fs::write(folder.path().join(format!("K{a}vK{b}.rtbw")), "cut").unwrap();
        }
        let error = Syzygy::open(&[folder.path().to_owned()]).unwrap_err();
        let said = error.to_string();
        assert_eq!(said.matches("3 bytes").count(), 8, "{said}");
        assert!(said.contains("8 more"), "{said}");
    }
}
