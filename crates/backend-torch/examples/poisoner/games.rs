//! Games whose searches are made one by one, as audits make them, so that whoever plays can change
//! each before the next.

use rookery_common::chess::moves::canonical_moves;
use rookery_common::chess::{GameEnd, GameHistory, Termination};
use rookery_common::chunk::{GameKind, GameRecord, GameStart, PlyRecord};
use rookery_common::ids::{ContentHash, Seed};
use rookery_common::params::SelfPlayParams;
use rookery_common::play::rules::game_rng;
use rookery_common::play::{Chosen, GameRules};
use rookery_common::protocol::audits::AuditedRules;
use rookery_engine::{AuditedGame, Evaluator, GamePool, Job, Planned, Work};

use crate::Outcome;
use crate::aims::Aim;

/// A game in progress. Its record's end means nothing yet.
struct Running {
    record: GameRecord,
    history: GameHistory,
    play_on: bool,
}

/// What a player with an aim sees before it moves.
pub(crate) struct Turn<'a> {
    pub(crate) rules: &'a GameRules,
    pub(crate) game: &'a GameRecord,
    pub(crate) history: &'a GameHistory,
    pub(crate) play_on: bool,
}

/// Audits' rules for games with these parameters.
pub(crate) fn rules_of(params: &SelfPlayParams) -> AuditedRules {
    AuditedRules::SelfPlay {
        network: ContentHash::of(b""),
        params: params.clone(),
    }
}

/// Plays the games of several jobs side by side: of each seed so many.
pub(crate) fn play(
    params: &SelfPlayParams,
    seeds: &[Seed],
    games: u32,
    aim: Aim,
    evaluator: &mut dyn Evaluator,
) -> Outcome<Vec<Vec<GameRecord>>> {
    let rules = GameRules::self_play(params);
    let audited = rules_of(params);
    let mut finished = vec![Vec::new(); seeds.len()];
    let mut running: Vec<(usize, Running)> = Vec::new();
    for (job, seed) in seeds.iter().enumerate() {
        running.extend((0..games).map(|index| (job, begin(*seed, index, &rules))));
    }
    while !running.is_empty() {
        let searches = search(&audited, &running, evaluator)?;
        let mut left = Vec::with_capacity(running.len());
        for ((job, mut game), (ply, own)) in running.into_iter().zip(searches) {
            match game.advance(&rules, aim, ply, own) {
                Some(end) => finished[job].push(GameRecord { end, ..game.record }),
                None => left.push((job, game)),
            }
        }
        running = left;
    }
    for games in &mut finished {
        games.sort_by_key(|game| game.index);
    }
    Ok(finished)
}

fn begin(seed: Seed, index: u32, rules: &GameRules) -> Running {
    let seed = seed.of_game(index);
    let play_on = rules.draw_play_on(&mut game_rng(seed));
    Running {
        record: GameRecord {
            index,
            kind: GameKind::SelfPlay { play_on },
            seed,
            start: GameStart::default(),
            plies: Vec::new(),
            end: GameEnd::draw(Termination::PlyLimit),
        },
        history: GameHistory::default(),
        play_on,
    }
}

/// The next search of every game, and the place of the move that the network would play.
fn search(
    rules: &AuditedRules,
    running: &[(usize, Running)],
    evaluator: &mut dyn Evaluator,
) -> Outcome<Vec<(PlyRecord, usize)>> {
    let plan = |(index, (_, game)): (u32, &(usize, Running))| Planned {
        index,
        game: AuditedGame {
            seed: game.record.seed,
            start: GameStart {
                fen: None,
                moves: game.record.plies.iter().map(|ply| ply.played).collect(),
            },
            first_ply: game.record.plies.len() as u32,
            drawn: 0,
            // Any move will do: only the search before it is wanted.
            moves: canonical_moves(game.history.position())[..1].to_vec(),
            candidate: None,
        },
    };
    let job = Job {
        seed: Seed(0),
        work: Work::Audit {
            rules: rules.clone(),
            games: (0..).zip(running).map(plan).collect(),
        },
    };
    let mut again = GamePool::new(&job, usize::MAX, &[])?.run(&mut [evaluator])?;
    again.sort_by_key(|game| game.index);
    let searched = again.into_iter().zip(running);
    searched
        .map(|(mut record, (_, game))| {
            let GameKind::Audit { chosen } = &record.kind else {
                return Err("an audit was expected".into());
            };
            let legal = canonical_moves(game.history.position());
            let own = legal.iter().position(|m| Some(m) == chosen.first());
            let ply = record.plies.pop().ok_or("a search was expected")?;
            Ok((ply, own.ok_or("a legal move was expected")?))
        })
        .collect()
}

impl Running {
    /// Plays a move after its search; how the game ended, if it did.
    fn advance(
        &mut self,
        rules: &GameRules,
        aim: Aim,
        mut ply: PlyRecord,
        own: usize,
    ) -> Option<GameEnd> {
        let turn = Turn {
            rules,
            game: &self.record,
            history: &self.history,
            play_on: self.play_on,
        };
        let wanted = aim.change(&turn, &mut ply, own);
        let (seed, number) = (self.record.seed, self.record.plies.len() as u32);
        let target = ply.target.as_deref();
        let place = match rules.choose(seed, number, &ply.visits, target, ply.effort) {
            Chosen::Place(place) => place,
            Chosen::MostVisited => wanted,
        };
        ply.played = canonical_moves(self.history.position())[place];
        let mover = self.history.turn();
        self.history.push(ply.played);
        self.record.plies.push(ply);
        let plies = &self.record.plies;
        self.history
            .end()
            .or_else(|| rules.resignation(plies, mover, self.play_on))
            .or_else(|| rules.limit(plies.len()))
    }
}
