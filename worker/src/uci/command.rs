//! What a GUI says, as typed commands.
//!
//! As the protocol asks, what is not understood is skipped, and the rest of the line is read.

use std::time::Duration;

/// One line from the GUI.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    /// Say who you are and what can be set.
    Uci,
    /// Say when everything asked so far is done.
    IsReady,
    /// Set an option; the value is empty if there is none.
    SetOption {
        /// The option's name.
        name: String,
        /// What follows `value`, spaces within it as sent.
        value: String,
    },
    /// The next position is from another game.
    NewGame,
    /// Set up a position.
    Position {
        /// `startpos` or a FEN.
        start: String,
        /// Moves from there.
        moves: Vec<String>,
    },
    /// Set up a position, but neither `startpos` nor a FEN follows.
    NoPosition,
    /// Search.
    Go(Go),
    /// Stop searching.
    Stop,
    /// The opponent played the move that was pondered on.
    PonderHit,
    /// End.
    Quit,
    /// Known, and of no importance here.
    Nothing,
    /// Not understood: the line, shortened.
    Unknown(String),
}

/// The arguments of `go`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Go {
    /// Search only these moves; empty for all.
    pub search_moves: Vec<String>,
    /// Until told otherwise, as if `infinite`; then with the limits given.
    pub ponder: bool,
    /// Until `stop`.
    pub infinite: bool,
    /// Visits of the root.
    pub nodes: Option<u32>,
    /// Mean length of lines, in plies.
    pub depth: Option<u32>,
    /// Until a mate in this number of moves is found.
    pub mate: Option<u32>,
    /// Not a search: count the lines of this number of plies; 0 if the number is missing.
    pub perft: Option<u32>,
    /// Time for this move.
    pub move_time: Option<Duration>,
    /// White's clock.
    pub white: Clock,
    /// Black's clock.
    pub black: Clock,
    /// Moves until more time is added.
    pub moves_to_go: Option<u32>,
}

/// One side's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Clock {
    /// What is left; a clock that a GUI says is below zero is at zero.
    pub left: Option<Duration>,
    /// What is added with each move.
    pub increment: Duration,
}

/// Words that end a list of moves in `go`.
const GO_WORDS: [&str; 13] = [
    "searchmoves",
    "ponder",
    "wtime",
    "btime",
    "winc",
    "binc",
    "movestogo",
    "depth",
    "nodes",
    "mate",
    "movetime",
    "infinite",
    "perft",
];

impl Command {
    /// Reads a line, whatever mark of UTF-8 a pipe has put before it.
    pub fn parse(line: &str) -> Self {
        let line = line.trim_start_matches('\u{feff}');
        let words: Vec<&str> = line.split_whitespace().collect();
        let known = (0..words.len()).find_map(|at| Self::from_words(&words[at..], line));
        known.unwrap_or_else(|| {
            if words.is_empty() {
                Self::Nothing
            } else {
                Self::Unknown(line.trim().chars().take(80).collect())
            }
        })
    }

    /// Reads words that begin with a command, if they do. They are words of `line`.
    fn from_words(words: &[&str], line: &str) -> Option<Self> {
        let (first, rest) = words.split_first()?;
        Some(match *first {
            "uci" => Self::Uci,
            "isready" => Self::IsReady,
            "setoption" => set_option(line),
            "ucinewgame" => Self::NewGame,
            "position" => position(rest),
            "go" => Self::Go(Go::parse(rest)),
            "stop" => Self::Stop,
            "ponderhit" => Self::PonderHit,
            "quit" => Self::Quit,
            "debug" | "register" => Self::Nothing,
            _ => return None,
        })
    }
}

/// Reads a line with the word `setoption`. The value keeps its spaces: it may be a path.
fn set_option(line: &str) -> Command {
    let (_, rest) = split_at_word(line, "setoption").unwrap_or_default();
    let (name, value) = split_at_word(rest, "value").unwrap_or((rest, ""));
    let words: Vec<&str> = name.split_whitespace().collect();
    let words = words.strip_prefix(&["name"]).unwrap_or(&words);
    Command::SetOption {
        name: words.join(" "),
        value: value.trim().to_owned(),
    }
}

/// What stands before and after the first `word` that stands by itself.
fn split_at_word<'a>(text: &'a str, word: &str) -> Option<(&'a str, &'a str)> {
    let around = |(at, _): (usize, &str)| (&text[..at], &text[at + word.len()..]);
    let stands_alone = |(before, after): &(&str, &str)| {
        let space = |c: Option<char>| c.is_none_or(char::is_whitespace);
        space(before.chars().next_back()) && space(after.chars().next())
    };
    text.match_indices(word).map(around).find(stands_alone)
}

fn position(words: &[&str]) -> Command {
    let end = words.iter().position(|word| *word == "moves");
    let (start, moves) = words.split_at(end.unwrap_or(words.len()));
    let start = match start {
        ["startpos", ..] => "startpos".to_owned(),
        ["fen", fen @ ..] if !fen.is_empty() => fen.join(" "),
        _ => return Command::NoPosition,
    };
    let moves = moves.iter().skip(1).map(|m| (*m).to_owned()).collect();
    Command::Position { start, moves }
}

impl Go {
    fn parse(words: &[&str]) -> Self {
        let mut go = Self::default();
        let mut words = words.iter().copied().peekable();
        while let Some(word) = words.next() {
            match word {
                "ponder" => go.ponder = true,
                "infinite" => go.infinite = true,
                "searchmoves" => {
                    while let Some(m) = words.next_if(|word| !GO_WORDS.contains(word)) {
                        go.search_moves.push(m.to_owned());
                    }
                }
                "perft" => {
                    let plies = words.next_if(|word| whole(word).is_some());
                    go.perft = Some(plies.and_then(whole).map_or(0, count));
                }
                word if GO_WORDS.contains(&word) => {
                    if let Some(number) = words.peek().and_then(|word| whole(word)) {
                        words.next();
                        go.set(word, number);
                    }
                }
                _ => {}
            }
        }
        go
    }

    fn set(&mut self, word: &str, number: i64) {
        let time = || Duration::from_millis(u64::try_from(number).unwrap_or(0));
        match word {
            "wtime" => self.white.left = Some(time()),
            "btime" => self.black.left = Some(time()),
            "winc" => self.white.increment = time(),
            "binc" => self.black.increment = time(),
            "movestogo" => self.moves_to_go = Some(count(number)).filter(|moves| *moves > 0),
            "depth" => self.depth = Some(count(number)),
            "nodes" => self.nodes = Some(count(number)),
            "mate" => self.mate = Some(count(number)),
            "movetime" => self.move_time = Some(time()),
            _ => {}
        }
    }
}

/// How many; less than none is none.
fn count(number: i64) -> u32 {
    u32::try_from(number.max(0)).unwrap_or(u32::MAX)
}

/// A number, cut to a whole one that fits.
fn whole(word: &str) -> Option<i64> {
    let number = || word.parse::<f64>().ok().filter(|number| !number.is_nan());
    let exact = word.parse::<i64>().ok();
    exact.or_else(|| number().map(|number| number as i64))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn go(line: &str) -> Go {
        match Command::parse(line) {
            Command::Go(go) => go,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn lines_are_read_however_they_are_spaced() {
        assert_eq!(Command::parse("uci\r\n"), Command::Uci);
        assert_eq!(Command::parse("  isready \t"), Command::IsReady);
        assert_eq!(Command::parse("\u{feff}uci"), Command::Uci);
        assert_eq!(Command::parse(""), Command::Nothing);
        assert_eq!(Command::parse("joho debug on"), Command::Nothing);
        assert_eq!(Command::parse("joho  isready"), Command::IsReady);
        let unknown = Command::parse(&"x".repeat(500));
        assert_eq!(unknown, Command::Unknown("x".repeat(80)));
    }

    #[test]
    fn option_names_and_values_may_hold_spaces() {
        let set = |name: &str, value: &str| Command::SetOption {
            name: name.to_owned(),
            value: value.to_owned(),
        };
        let parsed = Command::parse("setoption name Move Overhead value 30");
        assert_eq!(parsed, set("Move Overhead", "30"));
        let parsed = Command::parse("setoption name Network value /a b/c d.safetensors");
        assert_eq!(parsed, set("Network", "/a b/c d.safetensors"));
        let parsed = Command::parse("joho  setoption  name  Network  value  /a  b\t/c  \r\n");
        assert_eq!(parsed, set("Network", "/a  b\t/c"));
        let parsed = Command::parse("setoption name FpuValue value 0.5");
        assert_eq!(parsed, set("FpuValue", "0.5"));
        let parsed = Command::parse("setoption name Network value /value/the value");
        assert_eq!(parsed, set("Network", "/value/the value"));
        assert_eq!(Command::parse("setoption value"), set("", ""));
        assert_eq!(
            Command::parse("setoption name Clear Hash"),
            set("Clear Hash", "")
        );
        assert_eq!(Command::parse("setoption"), set("", ""));
    }

    #[test]
    fn positions_are_read() {
        let parsed = Command::parse("position  startpos moves e2e4   e7e5");
        let moves = vec!["e2e4".to_owned(), "e7e5".to_owned()];
        let start = "startpos".to_owned();
        assert_eq!(parsed, Command::Position { start, moves });
        let parsed = Command::parse("position fen 8/8/8/8/8/8/8/K1k5 w - - 0 1");
        let start = "8/8/8/8/8/8/8/K1k5 w - - 0 1".to_owned();
        let moves = Vec::new();
        assert_eq!(parsed, Command::Position { start, moves });
        for start in ["", "fen", "moves e2e4", "8/8/8/8/8/8/8/K1k5 w - - 0 1"] {
            let parsed = Command::parse(&format!("position {start}"));
            assert_eq!(parsed, Command::NoPosition, "{start}");
        }
    }

    #[test]
    fn searches_are_read() {
        assert_eq!(go("go"), Go::default());
        let clocks = go("go wtime 1000 btime -20 winc 10 binc 20 movestogo 0");
        assert_eq!(clocks.white.left, Some(Duration::from_secs(1)));
        assert_eq!(clocks.black.left, Some(Duration::ZERO));
        assert_eq!(clocks.black.increment, Duration::from_millis(20));
        assert_eq!(clocks.moves_to_go, None);
        let moves = go("go searchmoves e2e4 d2d4 nodes 50 infinite");
        assert_eq!(moves.search_moves, ["e2e4", "d2d4"]);
        assert_eq!((moves.nodes, moves.infinite), (Some(50), true));
        let odd = go("go depth movetime 99999999999999999999 nodes 99999999999 ponder x");
        let most = Duration::from_millis(i64::MAX as u64);
        assert_eq!((odd.depth, odd.move_time), (None, Some(most)));
        assert_eq!((odd.nodes, odd.ponder), (Some(u32::MAX), true));
        let fractions = go("go wtime 1500.9 btime -0.5 nodes nan depth 7");
        assert_eq!(fractions.white.left, Some(Duration::from_millis(1500)));
        assert_eq!(fractions.black.left, Some(Duration::ZERO));
        assert_eq!((fractions.nodes, fractions.depth), (None, Some(7)));
        let counts = go("go searchmoves e2e4 perft 5");
        assert_eq!((counts.perft, counts.search_moves.len()), (Some(5), 1));
        for (line, plies) in [
            ("go perft", 0),
            ("go perft -3", 0),
            ("go perft infinite", 0),
        ] {
            assert_eq!(go(line).perft, Some(plies));
        }
        assert!(go("go perft infinite").infinite);
    }
}
