//! A game that is being played, on a board beside others.

use askama::Template;
use rookery_common::chess::GameHistory;
use rookery_common::chunk::Side;
use rookery_common::ids::NetworkNumber;
use rookery_common::protocol::boards::LiveBoard;

use super::board::Board;

/// A board with what is written below it; `live-boards.js` goes on with it.
#[derive(Debug, Template)]
#[template(path = "live-board.html")]
pub(super) struct Figure {
    job: String,
    fen: String,
    white: Option<NetworkNumber>,
    black: Option<NetworkNumber>,
    contributor: String,
    /// What White is expected to score, in percent.
    expects: i32,
    board: Board,
}

impl Figure {
    /// The newest position of a game; none if there is no such position.
    pub(super) fn of(live: LiveBoard) -> Option<Self> {
        let newest = live.positions.last()?;
        let game = GameHistory::from_fen(&newest.fen).ok()?;
        let squares = newest.last.iter().flatten();
        let marked: Vec<_> = squares.filter_map(|square| square.parse().ok()).collect();
        Some(Self {
            job: live.job.to_string(),
            fen: newest.fen.clone(),
            white: Some(live.white),
            black: Some(live.black),
            contributor: live.contributor,
            expects: (100 + i32::from(live.value)) / 2,
            board: Board::new(game.position(), &marked, Side::White),
        })
    }

    /// What scripts copy for a game that is new.
    pub(super) fn empty() -> Self {
        Self {
            job: String::new(),
            fen: String::new(),
            white: None,
            black: None,
            contributor: String::new(),
            expects: 50,
            board: Board::new(GameHistory::default().position(), &[], Side::White),
        }
    }
}
