//! A match of any two players: both colours from each opening, many games at a time.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};

use rookery_common::chess::{GameEnd, Termination};
use rookery_common::chunk::record::GameStart;
use rookery_common::chunk::{GameKind, GameRecord, Side};
use rookery_common::ids::Seed;
use rookery_engine::players::{LiveGame, Player};

use crate::arena::{Games, MatchPlan, Standing, play_shares};

/// A thread's own two players, the one whose wins are counted first.
pub type Seats<'a> = [Box<dyn Player + Send + 'a>; 2];

/// A game in hand.
#[derive(Debug)]
struct Board {
    index: u32,
    pair: u32,
    /// The first player's side.
    side: Side,
    start: GameStart,
    game: LiveGame,
}

impl Board {
    /// Whose turn it is.
    fn seat(&self) -> usize {
        usize::from(Side::from(self.game.history().turn()) != self.side)
    }

    fn end(&self, ply_limit: u32) -> Option<GameEnd> {
        let long = self.game.plies() >= ply_limit as usize;
        let end = self.game.history().end();
        end.or_else(|| long.then(|| GameEnd::draw(Termination::PlyLimit)))
    }

    /// The game for counting and PGN. No visits are recorded, as not every player has any, so all
    /// moves are the start's.
    fn record(self, end: GameEnd) -> GameRecord {
        GameRecord {
            index: self.index,
            kind: GameKind::Match {
                pair: self.pair,
                candidate: self.side,
            },
            seed: Seed(0),
            start: GameStart {
                fen: self.start.fen,
                moves: self.game.moves().to_vec(),
            },
            plies: Vec::new(),
            end,
        }
    }
}

/// Plays a match on a thread for each of `seats`, until all games are over or `each`, which sees
/// every finished game, breaks off. Of the plan's parameters only the ply limit is used: players
/// know themselves how to search.
///
/// # Errors
///
/// If an opening is wrong, a player fails, or `each` does.
pub fn play(
    plan: &MatchPlan,
    seats: Vec<Seats<'_>>,
    each: impl FnMut(&GameRecord, &Standing) -> anyhow::Result<ControlFlow<()>>,
) -> anyhow::Result<Standing> {
    let threads = seats.len().max(1);
    let hands = plan.concurrency.div_ceil(threads).max(1);
    let share = |thread: usize| Share {
        plan,
        hands,
        games: (thread as u32..plan.pairs).step_by(threads),
        half: None,
    };
    let shares: Vec<_> = (0..).map(share).zip(seats).collect();
    let play_share = |(share, seats): (Share<'_>, Seats<'_>), games: &Games, stop: &AtomicBool| {
        share.play(seats, games, stop)
    };
    play_shares(plan, shares, play_share, each)
}

/// One thread's games.
struct Share<'a> {
    plan: &'a MatchPlan,
    /// Games in hand at a time.
    hands: usize,
    games: std::iter::StepBy<std::ops::Range<u32>>,
    /// The second game of the pair that began last.
    half: Option<u32>,
}

impl Share<'_> {
    fn next_board(&mut self) -> anyhow::Result<Option<Board>> {
        let (pair, side) = match self.half.take() {
            Some(pair) => (pair, Side::Black),
            None => match self.games.next() {
                Some(pair) => {
                    self.half = Some(pair);
                    (pair, Side::White)
                }
                None => return Ok(None),
            },
        };
        let start = self.plan.book.of_pair(self.plan.seed, pair).start()?;
        let game = LiveGame::new(&start)?;
        Ok(Some(Board {
            index: 2 * pair + u32::from(side == Side::Black),
            pair,
            side,
            start,
            game,
        }))
    }

    fn play(
        mut self,
        mut seats: Seats<'_>,
        games: &Games,
        stop: &AtomicBool,
    ) -> anyhow::Result<()> {
        let mut boards: Vec<Board> = Vec::new();
        loop {
            while boards.len() < self.hands
                && let Some(board) = self.next_board()?
            {
                boards.push(board);
            }
            if boards.is_empty() || stop.load(Ordering::Relaxed) {
                return Ok(());
            }
            for (seat, player) in seats.iter_mut().enumerate() {
                move_all(&mut boards, seat, player)?;
                self.send_finished(&mut boards, games);
            }
        }
    }

    fn send_finished(&self, boards: &mut Vec<Board>, games: &Games) {
        let mut index = 0;
        while index < boards.len() {
            match boards[index].end(self.plan.params.ply_limit) {
                None => index += 1,
                Some(end) => {
                    let record = boards.swap_remove(index).record(end);
                    // The receiver outlives the thread.
                    drop(games.send(Ok(record)));
                }
            }
        }
    }
}

/// Lets a player move in every game in which it is its turn.
fn move_all(boards: &mut [Board], seat: usize, player: &mut impl Player) -> anyhow::Result<()> {
    let mut turns: Vec<&mut Board> = boards.iter_mut().filter(|b| b.seat() == seat).collect();
    if turns.is_empty() {
        return Ok(());
    }
    let games: Vec<&LiveGame> = turns.iter().map(|board| &board.game).collect();
    let choices = player.choose(&games)?;
    anyhow::ensure!(
        choices.len() == turns.len(),
        "a player left games without a move"
    );
    for (board, choice) in turns.iter_mut().zip(choices) {
        board.game.push(choice.m);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use rookery_common::network::Program;
    use rookery_common::openings::OpeningBook;
    use rookery_common::params::MatchParams;
    use rookery_engine::players::{Choice, PlayerError, ProgramPlayer};

    use super::*;

    fn program(program: Program) -> Box<dyn Player + Send> {
        Box::new(ProgramPlayer::new(program, 1))
    }

    fn plan(pairs: u32, ply_limit: u32) -> MatchPlan {
        MatchPlan {
            pairs,
            params: MatchParams {
                ply_limit,
                ..MatchParams::default()
            },
            book: OpeningBook::built_in(),
            seed: Seed(5),
            sprt: None,
            concurrency: 6,
        }
    }

    fn contest(pairs: u32, threads: usize) -> (Standing, Vec<GameRecord>) {
        let plan = plan(pairs, 120);
        let seats = || -> Seats<'_> { [program(Program::alpha_beta(1)), program(Program::Random)] };
        let mut games = Vec::new();
        let standing = play(&plan, (0..threads).map(|_| seats()).collect(), |game, _| {
            games.push(game.clone());
            Ok(ControlFlow::Continue(()))
        });
        games.sort_by_key(|game| game.index);
        (standing.unwrap(), games)
    }

    #[test]
    fn both_colours_are_played_and_the_better_player_scores() {
        let (standing, games) = contest(5, 1);
        assert_eq!((games.len(), standing.tally.pairs.pairs()), (10, 5));
        assert!(
            standing.tally.score().unwrap() > 0.7,
            "{:?}",
            standing.tally
        );
        for (index, game) in games.iter().enumerate() {
            let side = if index % 2 == 0 {
                Side::White
            } else {
                Side::Black
            };
            let pair = index as u32 / 2;
            let candidate = side;
            assert_eq!(game.kind, GameKind::Match { pair, candidate });
            let played = game.start.history().unwrap();
            let limit = game.end.termination == Termination::PlyLimit;
            assert!(played.end() == Some(game.end) || (limit && played.plies() >= 120));
        }
    }

    /// As in a match between networks: openings differ in length, and are nobody's plies.
    #[test]
    fn a_limit_of_plies_does_not_count_the_opening() {
        let plan = plan(4, 10);
        let seats: Vec<Seats<'_>> = vec![[program(Program::Random), program(Program::Random)]];
        let mut cut_off = 0;
        play(&plan, seats, |game, _| {
            let GameKind::Match { pair, .. } = game.kind else {
                panic!("no match game")
            };
            let opening = plan.book.of_pair(plan.seed, pair).start().unwrap();
            let played = game.start.moves.len() - opening.moves.len();
            if game.end.termination == Termination::PlyLimit {
                assert!(!opening.moves.is_empty());
                assert_eq!(played, 10);
                cut_off += 1;
            }
            Ok(ControlFlow::Continue(()))
        })
        .unwrap();
        assert!(cut_off > 0);
    }

    #[test]
    fn the_games_do_not_depend_on_the_number_of_threads() {
        assert_eq!(contest(3, 1).1, contest(3, 2).1);
    }

    #[test]
    fn a_player_that_fails_ends_the_match_with_its_reason() {
        struct Broken;
        impl Player for Broken {
            fn choose(&mut self, _: &[&LiveGame]) -> Result<Vec<Choice>, PlayerError> {
                Err(PlayerError {
                    player: "Odd".to_owned(),
                    reason: "it was ill".to_owned(),
                })
            }
        }
        let seats: Vec<Seats<'_>> = vec![[Box::new(Broken), program(Program::Random)]];
        let error = play(&plan(2, 120), seats, |_, _| Ok(ControlFlow::Continue(()))).unwrap_err();
        assert!(error.to_string().contains("it was ill"), "{error}");
    }
}
