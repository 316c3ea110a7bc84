//! A strong chess engine as referee: started when it is first asked, one for each thread.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use parking_lot::Mutex;
use rookery_common::chess::GameHistory;
use rookery_common::params::EngineParams;
use rookery_engine::Referee;
use rookery_uci::{Answer, Engine, Game, Launch, Limits, Score, UciError, locate};
use shakmaty::Color;

/// Failures one after the other until it is not asked any more.
const FAILURES: u32 = 3;

/// An engine that is asked who wins. One that fails is started again a few times; then games are
/// played on.
#[derive(Debug)]
pub struct EngineReferee {
    launch: Launch,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    engine: Option<Engine>,
    /// Failures since the last answer.
    failures: u32,
}

impl EngineReferee {
    /// Starts the program once, a path or a name to be looked for, and gives its file.
    ///
    /// # Errors
    ///
    /// If it does not start, or does not speak UCI.
    pub fn try_out(program: &Path) -> anyhow::Result<PathBuf> {
        let program = locate(program);
        let engine = Engine::start(&Launch::new(&program))
            .with_context(|| format!("cannot adjudicate by {}", program.display()))?;
        tracing::info!("games can be adjudicated by {}", engine.name());
        engine.quit();
        Ok(program)
    }

    /// The referee that this program will be: a path, or a name to be looked for.
    pub fn new(program: &Path) -> Self {
        Self {
            launch: Launch::new(locate(program)),
            state: Mutex::default(),
        }
    }

    fn ask(&self, state: &mut State, game: &GameHistory, nodes: u32) -> Result<Answer, UciError> {
        let engine = match &mut state.engine {
            Some(engine) => engine,
            none => none.insert(Engine::start(&self.launch)?),
        };
        // Positions before this one would matter to repetitions only.
        let game = Game {
            start: game.position(),
            moves: &[],
        };
        engine.search(game, &Limits::nodes(nodes.into()))
    }
}

impl Referee for EngineReferee {
    fn winner(&self, game: &GameHistory, params: &EngineParams) -> Option<Color> {
        let mut state = self.state.lock();
        if state.failures >= FAILURES {
            return None;
        }
        match self.ask(&mut state, game, params.nodes) {
            Ok(answer) => {
                state.failures = 0;
                winner(answer.info.score?, game.turn(), params.centipawns)
            }
            Err(error) => {
                state.engine = None;
                state.failures += 1;
                let then = if state.failures < FAILURES {
                    "it is started again when it is needed"
                } else {
                    "it is not asked any more, games are played on"
                };
                tracing::warn!("the engine that adjudicates failed, {then}: {error}");
                None
            }
        }
    }
}

/// The side that wins by this score, of the side to move, if it is high enough.
fn winner(score: Score, turn: Color, centipawns: u32) -> Option<Color> {
    match score {
        Score::Centipawns(n) if n.unsigned_abs() < centipawns => None,
        Score::Centipawns(n) if n > 0 => Some(turn),
        Score::Mate(n) if n > 0 => Some(turn),
        Score::Centipawns(_) | Score::Mate(_) => Some(!turn),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    const QUEEN_UP: &str = "4k3/8/8/8/8/8/8/3QK3 w - - 0 1";

    /// A program that speaks just enough UCI to give this score, and ends after this number of searches.
    fn script(folder: &Path, score: &str, searches: u32) -> PathBuf {
        let path = folder.join("engine");
        let text = format!(
            "#!/bin/sh\necho started >> '{}'\nleft={searches}\nwhile read -r word rest; do\n\
             case \"$word\" in\nuci) echo uciok;;\nisready) echo readyok;;\nquit) exit 0;;\n\
             go) [ $left -gt 0 ] || exit 1; left=$((left - 1)); echo \"info depth 1 score {score}\"; \
             echo 'bestmove e1e2';;\nesac\ndone\n",
            folder.join("starts").display()
        );
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    fn ask(referee: &EngineReferee, fen: &str) -> Option<Color> {
        let game = GameHistory::from_fen(fen).unwrap();
        referee.winner(&game, &EngineParams::default())
    }

    #[test]
    fn scores_name_the_winner_when_they_are_high_enough() {
        let (white, black) = (Some(Color::White), Some(Color::Black));
        for (score, expected) in [
            (Score::Centipawns(500), white),
            (Score::Centipawns(499), None),
            (Score::Centipawns(-500), black),
            (Score::Centipawns(i32::MIN), black),
            (Score::Mate(3), white),
            (Score::Mate(-1), black),
            (Score::Mate(0), black),
        ] {
            assert_eq!(winner(score, Color::White, 500), expected, "{score:?}");
        }
        assert_eq!(winner(Score::Centipawns(600), Color::Black, 500), black);
    }

    #[test]
    fn an_engine_that_dies_is_started_again_and_given_up_in_the_end() {
        let folder = tempfile::tempdir().unwrap();
        let starts = || {
            let text = std::fs::read_to_string(folder.path().join("starts"));
            text.unwrap_or_default().lines().count()
        };
        let referee = EngineReferee::new(&script(folder.path(), "cp 700", 2));
        assert_eq!(starts(), 0, "not before it is needed");
        assert_eq!(ask(&referee, QUEEN_UP), Some(Color::White));
        assert_eq!(ask(&referee, QUEEN_UP), Some(Color::White));
        assert_eq!(ask(&referee, QUEEN_UP), None, "it has ended");
        assert_eq!(starts(), 1);
        assert_eq!(ask(&referee, QUEEN_UP), Some(Color::White));
        assert_eq!(starts(), 2);
        let broken = EngineReferee::new(&script(folder.path(), "cp 700", 0));
        for _ in 0..5 {
            assert_eq!(ask(&broken, QUEEN_UP), None);
        }
        assert_eq!(starts(), 5, "three times more");
        assert_eq!(
            ask(&EngineReferee::new(Path::new("/no/such/engine")), QUEEN_UP),
            None
        );
    }

    #[test]
    fn stockfish_knows_who_wins() {
        let program = locate(Path::new("stockfish"));
        if !program.is_file() {
            return;
        }
        let referee = EngineReferee::new(&program);
        assert_eq!(ask(&referee, QUEEN_UP), Some(Color::White));
        let flipped = "3qk3/8/8/8/8/8/8/4K3 w - - 0 1";
        assert_eq!(ask(&referee, flipped), Some(Color::Black));
        let start = "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1";
        assert_eq!(ask(&referee, start), None);
    }
}
