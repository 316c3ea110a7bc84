//! `info` lines.

use std::time::{Duration, Instant};

use rookery_common::chess::GameHistory;
use rookery_engine::Wdl;
use rookery_engine::search::{Line, Searcher};
use shakmaty::Move;

use super::options::Options;
use super::output::Output;
use rookery_analysis::position_line::Notation;

/// Lines are never sent sooner after each other than this …
const SHORTEST_PAUSE: Duration = Duration::from_millis(50);
/// … and never later, while search goes on.
const LONGEST_PAUSE: Duration = Duration::from_millis(800);
/// Most moves of a line shown.
const MOST_MOVES: usize = 60;

/// Tells the GUI of one search.
pub(super) struct Reporter {
    output: Output,
    notation: Notation,
    lines: usize,
    show_wdl: bool,
    began: Instant,
    sent: Option<Sent>,
}

/// What was told last.
struct Sent {
    at: Instant,
    depth: u32,
    best: Option<Move>,
}

impl Reporter {
    pub(super) fn new(output: Output, options: &Options, began: Instant) -> Self {
        Self {
            output,
            notation: Notation::from_flag(options.chess960),
            lines: options.multi_pv as usize,
            show_wdl: options.show_wdl,
            began,
            sent: None,
        }
    }

    /// Reports if there is news, or the GUI has heard nothing for a while.
    pub(super) fn report_news(&mut self, searcher: &Searcher, game: &GameHistory) {
        let now = Instant::now();
        let waited = self
            .sent
            .as_ref()
            .map_or(Duration::MAX, |sent| now - sent.at);
        if waited < SHORTEST_PAUSE {
            return;
        }
        let best = searcher.lines(1).first().map(|line| line.moves[0]);
        let depth = searcher.stats().depth;
        let news = |sent: &Sent| sent.best != best || sent.depth != depth;
        if waited >= LONGEST_PAUSE || self.sent.as_ref().is_none_or(news) {
            self.report(searcher, game);
        }
    }

    /// Reports.
    pub(super) fn report(&mut self, searcher: &Searcher, game: &GameHistory) {
        let lines = searcher.lines(self.lines);
        let head = self.head(searcher);
        for (index, line) in lines.iter().enumerate() {
            let score = score(line, self.show_wdl);
            let pv = write_line(game, &line.moves, self.notation);
            self.output.line(&format!(
                "info {} multipv {} score {score} {} pv {pv}",
                head.0,
                index + 1,
                head.1
            ));
        }
        self.sent = Some(Sent {
            at: Instant::now(),
            depth: searcher.stats().depth,
            best: lines.first().map(|line| line.moves[0]),
        });
    }

    /// What stands before and after the score.
    fn head(&self, searcher: &Searcher) -> (String, String) {
        let stats = searcher.stats();
        let time = self.began.elapsed();
        let speed = stats.new_visits as f64 / time.as_secs_f64().max(1e-3);
        (
            format!("depth {} seldepth {}", stats.depth, stats.deepest),
            format!(
                "nodes {} nps {} hashfull {} tbhits {} time {}",
                stats.visits,
                speed.round(),
                (stats.fullness * 1000.0).round().min(1000.0),
                stats.table_hits,
                time.as_millis()
            ),
        )
    }

    /// Reports a position in which the game is over.
    pub(super) fn report_end(&self, game: &GameHistory) {
        let mated = shakmaty::Position::is_check(game.position());
        let score = match (mated, self.show_wdl) {
            (true, true) => "mate 0 wdl 0 0 1000",
            (true, false) => "mate 0",
            (false, true) => "cp 0 wdl 0 1000 0",
            (false, false) => "cp 0",
        };
        self.output.line(&format!("info depth 0 score {score}"));
    }

    /// Sends the move, and the reply to ponder on.
    pub(super) fn best_move(&self, game: &GameHistory, moves: &[Move]) {
        let mut texts = write_moves(game, moves, self.notation).into_iter();
        let mut line = format!("bestmove {}", texts.next().as_deref().unwrap_or("(none)"));
        if let Some(reply) = texts.next() {
            line += " ponder ";
            line += &reply;
        }
        self.output.line(&line);
    }
}

/// The score as UCI writes it, for the mover.
fn score(line: &Line, show_wdl: bool) -> String {
    let mut score = match line.mate {
        Some(moves) => format!("mate {moves}"),
        None => format!("cp {}", centipawns(line.value.q())),
    };
    if show_wdl {
        let [win, draw, loss] = per_mille(line.value);
        score += &format!(" wdl {win} {draw} {loss}");
    }
    score
}

/// A value from -1 to 1 in centipawns: `90 tan(1.5637541897 q)`, as Lc0's `ScoreType` `centipawn` has it
/// (1.5637541897 puts a certain win at 127.8 pawns).
fn centipawns(q: f32) -> i32 {
    (90.0 * (1.563_754_189_7 * f64::from(q.clamp(-1.0, 1.0))).tan()).round() as i32
}

/// Thousandths that add up to 1000.
fn per_mille(value: Wdl) -> [u32; 3] {
    let round = |share: f32| (share.clamp(0.0, 1.0) * 1000.0).round() as u32;
    let (win, loss) = (round(value.win), round(value.loss));
    let loss = loss.min(1000 - win);
    [win, 1000 - win - loss, loss]
}

fn write_line(game: &GameHistory, moves: &[Move], notation: Notation) -> String {
    write_moves(game, &moves[..moves.len().min(MOST_MOVES)], notation).join(" ")
}

fn write_moves(game: &GameHistory, moves: &[Move], notation: Notation) -> Vec<String> {
    // How castling is written depends on the game's start, not on where it stands.
    moves.iter().map(|m| notation.write(game, *m)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scores_are_for_the_mover() {
        let line = |value, mate| Line {
            moves: Vec::new(),
            visits: 1,
            value,
            mate,
        };
        assert_eq!(score(&line(Wdl::DRAW, None), true), "cp 0 wdl 0 1000 0");
        assert_eq!(score(&line(Wdl::from_q(0.5), None), false), "cp 89");
        assert_eq!(score(&line(Wdl::WIN, None), false), "cp 12780");
        assert_eq!(
            score(&line(Wdl::LOSS, Some(-2)), true),
            "mate -2 wdl 0 0 1000"
        );
    }

    #[test]
    fn thousandths_add_up() {
        for (win, draw) in [(0.3335, 0.333), (0.0005, 0.999), (0.9996, 0.0), (1.0, 0.1)] {
            let loss = 1.0 - win - draw;
            let sum: u32 = per_mille(Wdl { win, draw, loss }).iter().sum();
            assert_eq!(sum, 1000);
        }
    }
}
