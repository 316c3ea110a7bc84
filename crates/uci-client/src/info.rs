//! What an engine says while it thinks.

use std::time::Duration;

/// A score as the side to move sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Score {
    /// Hundredths of a pawn.
    Centipawns(i32),
    /// Mate in this number of moves; negative if the side to move is mated.
    Mate(i32),
}

/// The last complete report on the best line.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Info {
    /// Plies searched.
    pub depth: Option<u32>,
    /// Positions searched.
    pub nodes: Option<u64>,
    /// Time spent.
    pub time: Option<Duration>,
    /// What the position is worth, unless only a bound was reported.
    pub score: Option<Score>,
    /// Win, draw and loss in thousandths, from engines with `UCI_ShowWDL`.
    pub wdl: Option<[u16; 3]>,
    /// The best line, moves as the engine writes them.
    pub line: Vec<String>,
}

/// Longest line that is kept, in moves.
const LONGEST_LINE: usize = 256;

impl Info {
    /// Takes over what follows the word `info`. What is not understood is passed over, as UCI asks;
    /// reports on other lines than the best, and bounds, change no score.
    pub(crate) fn update(&mut self, report: &str) {
        let mut words = report.split_whitespace();
        let mut new = Self::default();
        let (mut best, mut bound) = (true, false);
        while let Some(word) = words.next() {
            match word {
                "depth" => new.depth = number(words.next()),
                "nodes" => new.nodes = number(words.next()),
                "time" => new.time = number(words.next()).map(Duration::from_millis),
                "multipv" => best = number::<u32>(words.next()) == Some(1),
                "score" => new.score = score(&mut words),
                "lowerbound" | "upperbound" => bound = true,
                "wdl" => new.wdl = wdl(&mut words),
                // Everything after these belongs to them.
                "pv" => {
                    new.line = words
                        .by_ref()
                        .take(LONGEST_LINE)
                        .map(str::to_owned)
                        .collect();
                }
                "string" => break,
                _ => {}
            }
        }
        if !best {
            return;
        }
        if bound || new.score.is_none() {
            (new.score, new.wdl, new.line) = (None, None, Vec::new());
        }
        self.merge(new);
    }

    fn merge(&mut self, new: Self) {
        self.depth = new.depth.or(self.depth);
        self.nodes = new.nodes.or(self.nodes);
        self.time = new.time.or(self.time);
        if new.score.is_some() {
            (self.score, self.wdl, self.line) = (new.score, new.wdl, new.line);
        }
    }
}

fn number<T: std::str::FromStr>(word: Option<&str>) -> Option<T> {
    word?.parse().ok()
}

fn score<'a>(words: &mut impl Iterator<Item = &'a str>) -> Option<Score> {
    match words.next()? {
        "cp" => number(words.next()).map(Score::Centipawns),
        "mate" => number(words.next()).map(Score::Mate),
        _ => None,
    }
}

fn wdl<'a>(words: &mut impl Iterator<Item = &'a str>) -> Option<[u16; 3]> {
    let shares = [0; 3].map(|_: u16| number::<u16>(words.next()));
    let [Some(win), Some(draw), Some(loss)] = shares else {
        return None;
    };
    (u32::from(win) + u32::from(draw) + u32::from(loss) == 1000).then_some([win, draw, loss])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(reports: &[&str]) -> Info {
        let mut info = Info::default();
        reports.iter().for_each(|report| info.update(report));
        info
    }

    #[test]
    fn the_last_exact_score_of_the_best_line_counts() {
        let info = after(&[
            "depth 5 seldepth 6 multipv 1 score cp 31 wdl 60 900 40 nodes 900 nps 9 time 12 pv e2e4 e7e5",
            "depth 5 multipv 2 score cp -90 nodes 950 pv a2a3",
            "depth 6 multipv 1 score cp 80 lowerbound nodes 1000 pv d2d4",
            "depth 6 currmove g1f3 currmovenumber 3",
            "string score cp 1234",
        ]);
        assert_eq!(info.score, Some(Score::Centipawns(31)));
        assert_eq!(info.wdl, Some([60, 900, 40]));
        assert_eq!(info.line, ["e2e4", "e7e5"]);
        assert_eq!((info.depth, info.nodes), (Some(6), Some(1000)));
        assert_eq!(info.time, Some(Duration::from_millis(12)));
    }

    #[test]
    fn mates_are_told_apart() {
        assert_eq!(after(&["score mate -3"]).score, Some(Score::Mate(-3)));
    }

    #[test]
    fn nonsense_changes_nothing() {
        for report in [
            "score",
            "score cp",
            "score cp x",
            "score wdl 1 2",
            "depth -1",
            "pv",
            "",
        ] {
            assert_eq!(after(&[report]), Info::default(), "{report:?}");
        }
        assert_eq!(after(&["score cp 1 wdl 9 9 9"]).wdl, None);
    }
}
