//! The largest lies that audits accept: for each field, as a share of plies with a search that has
//! nothing to do with the network's, and as a distance in every ply.

use rookery_backend_torch::NetworkEvaluator;
use rookery_common::audit::{
    AuditDepth, Disagreement, Finding, Span, Tolerance, sample, span_distances,
};
use rookery_common::chess::Termination;
use rookery_common::chunk::{GameRecord, GameStart};
use rookery_common::ids::Seed;
use rookery_common::params::{RootSearch, SelfPlayParams};
use rookery_common::play::{Chosen, GameRules};
use rookery_common::protocol::jobs::Backend;
use rookery_engine::{AuditedGame, Evaluator, GamePool, Job, Planned, Work};

use crate::again::sampled;
use crate::games::rules_of;
use crate::{Outcome, gumbel, params};

/// Audits that are drawn for each share.
const AUDITS: u64 = 400;
/// Audits of which the contributor's last ones are judged together: by 512 positions.
const TOGETHER: u64 = 8;
/// Games of a chunk.
const CHUNK: usize = 8;

/// What one lie changes of a ply's distances, if it is told with this size.
type Tell = fn(&mut Disagreement, f64);

/// A lie about one field, and what it is worth where it is as large as can be.
struct Lie {
    field: &'static str,
    tell: Tell,
    most: f64,
    /// Whether it can be small.
    scales: bool,
    /// Whether it is told of a game's last search only.
    last: bool,
}

const PUCT: [Lie; 2] = [
    Lie {
        field: "visits, from which the move is drawn",
        tell: |d, size| {
            d.policy = (d.policy + size).min(1.0);
            d.visits = (d.visits + size).min(1.0);
        },
        most: 1.0,
        scales: true,
        last: false,
    },
    ROOT,
];

const GUMBEL: [Lie; 5] = [
    Lie {
        field: "policy target",
        tell: |d, size| d.policy = (d.policy + size).min(1.0),
        most: 1.0,
        scales: true,
        last: false,
    },
    Lie {
        field: "visits and choice: another move is played",
        tell: |d, _| {
            // A finalist's four visits of 32 for none.
            d.visits = (d.visits + 0.125).min(1.0);
            d.choice = 1.0;
        },
        most: 1.0,
        scales: false,
        last: false,
    },
    Lie {
        field: "choice among equals; random opening plies",
        tell: |d, _| d.choice = 1.0,
        most: 1.0,
        scales: false,
        last: false,
    },
    ROOT,
    Lie {
        field: "best value",
        tell: |d, size| d.best += size,
        most: 1.0,
        scales: true,
        last: false,
    },
];

/// A game that is given up by the side that is ahead by 0.3.
const GIVEN_UP: Lie = Lie {
    field: "values of the search that gives up, share of these games",
    tell: |d, _| {
        d.value += 1.2;
        d.best += 1.2;
    },
    most: 1.2,
    scales: false,
    last: true,
};

const ROOT: Lie = Lie {
    field: "root value",
    tell: |d, size| d.value += size,
    most: 1.0,
    scales: true,
    last: false,
};

/// Prints the table: for each lie, how much of it half of all audits accept, and how much 95 of
/// 100 do.
pub(crate) fn print([mut long, mut short]: [NetworkEvaluator; 2], games: u32) -> Outcome<()> {
    println!(
        "| search | field | auditor, claimed | share of plies false: one audit accepts, 50 % and 95 % | {TOGETHER} together | in every ply | {TOGETHER} together |"
    );
    println!("|---|---|---|---|---|---|---|");
    for (search, root, lies) in [
        ("PUCT 32", RootSearch::Puct, &PUCT[..]),
        ("Gumbel 32", gumbel(), &GUMBEL),
    ] {
        let params = params(root.clone());
        let games = played(&params, games, &mut long)?;
        if root == RootSearch::Puct {
            let cost = cost_of_moves(&params, &games);
            println!(
                "| {search} | to play the move with fewest visits moves {cost:.2} of all visits | | | | | |"
            );
        }
        for (auditor, backend, by) in [
            ("f32", Backend::CpuF32, &mut long as &mut dyn Evaluator),
            ("bf16", Backend::CpuBf16, &mut short),
        ] {
            let distances = honest(&params, &games, by)?;
            let pooled = pool(distances.iter().flatten());
            println!(
                "| {search} | honest: policy {:.3}, visits {:.3}, value {:.4}, best {:.4}, choice {:.3} of {} | {auditor}, f32 | | | | |",
                pooled.policy,
                pooled.visits,
                pooled.value,
                pooled.best,
                pooled.choice,
                pooled.plies
            );
            for theirs in [Backend::CpuF32, Backend::CudaBf16] {
                let court = Court {
                    games: &games,
                    distances: &distances,
                    tolerance: Tolerance::between(theirs, backend),
                    termination: Termination::PlyLimit,
                };
                if theirs == Backend::CpuF32 || auditor == "f32" {
                    lies.iter()
                        .for_each(|lie| println!("{}", court.row(search, auditor, theirs, lie)));
                    let ended = Court {
                        termination: Termination::Resignation,
                        ..court
                    };
                    println!(
                        "{} if audits look at it",
                        ended.row(search, auditor, theirs, &GIVEN_UP)
                    );
                    println!("{} if not", court.row(search, auditor, theirs, &GIVEN_UP));
                }
            }
        }
    }
    Ok(())
}

/// Games as the engine plays them.
fn played(
    params: &SelfPlayParams,
    games: u32,
    evaluator: &mut dyn Evaluator,
) -> Outcome<Vec<GameRecord>> {
    let plan = |index| Planned {
        index,
        game: GameStart::default(),
    };
    let work = Work::SelfPlay {
        params: params.clone(),
        games: (0..games).map(plan).collect(),
    };
    run(work, evaluator)
}

fn run(work: Work, evaluator: &mut dyn Evaluator) -> Outcome<Vec<GameRecord>> {
    let job = Job {
        seed: Seed(31),
        work,
    };
    let mut games = GamePool::new(&job, 64, &[])?.run(&mut [evaluator])?;
    games.sort_by_key(|game| game.index);
    Ok(games)
}

/// The distances of every search of these games, made again.
fn honest(
    params: &SelfPlayParams,
    games: &[GameRecord],
    evaluator: &mut dyn Evaluator,
) -> Outcome<Vec<Vec<Disagreement>>> {
    let whole = |game: &GameRecord| AuditedGame {
        seed: game.seed,
        start: game.start.clone(),
        first_ply: 0,
        drawn: 0,
        moves: game.plies.iter().map(|ply| ply.played).collect(),
        candidate: None,
    };
    let work = Work::Audit {
        rules: rules_of(params),
        games: (0..)
            .zip(games)
            .map(|(index, game)| Planned {
                index,
                game: whole(game),
            })
            .collect(),
    };
    let again = run(work, evaluator)?;
    let distances = games.iter().zip(&again).map(|(game, again)| {
        let span = Span {
            game: game.index,
            first: 0,
            compared: 0,
            end: game.plies.len() as u32,
        };
        span_distances(game, &span, again).collect()
    });
    Ok(distances.collect())
}

/// What share of a search's visits must be given to the visited move that has fewest, so that the seed draws it: the
/// mean over all plies. It need not be the least, as visits could also move between others.
fn cost_of_moves(params: &SelfPlayParams, games: &[GameRecord]) -> f64 {
    let rules = GameRules::self_play(params);
    let (mut sum, mut plies) = (0.0, 0);
    for game in games {
        for (number, ply) in (0..).zip(&game.plies) {
            let mut visits = ply.visits.clone();
            let visited = (0..visits.len()).filter(|place| visits[*place] > 0);
            let Some(wished) = visited.min_by_key(|place| visits[*place]) else {
                continue;
            };
            let all: u32 = visits.iter().sum();
            let mut moved = 0;
            while moved < all
                && rules.choose(game.seed, number, &visits, None, ply.effort)
                    != Chosen::Place(wished)
            {
                let others = (0..visits.len()).filter(|place| *place != wished);
                let Some(most) = others.max_by_key(|place| visits[*place]) else {
                    break;
                };
                visits[most] -= 1;
                visits[wished] += 1;
                moved += 1;
            }
            sum += f64::from(moved) / f64::from(all);
            plies += 1;
        }
    }
    sum / f64::from(plies)
}

fn pool<'a>(distances: impl Iterator<Item = &'a Disagreement>) -> Disagreement {
    distances.fold(Disagreement::default(), |sum, one| sum.and(*one))
}

/// Audits of games whose honest distances are known.
#[derive(Clone, Copy)]
struct Court<'a> {
    games: &'a [GameRecord],
    distances: &'a [Vec<Disagreement>],
    tolerance: Tolerance,
    /// As if all games had ended so.
    termination: Termination,
}

impl Court<'_> {
    fn row(&self, search: &str, auditor: &str, theirs: Backend, lie: &Lie) -> String {
        let largest = |together, wanted: f64, most, tell: &dyn Fn(f64, f64, &mut Disagreement)| {
            largest(wanted, most, |size| {
                self.accepted(together, |last, luck, d| {
                    if last || !lie.last {
                        tell(size, luck, d);
                    }
                })
            })
        };
        let share = |together| {
            let sizes = [0.5, 0.95].map(|wanted| {
                let share = largest(together, wanted, 1.0, &|share, luck, d| {
                    if luck < share {
                        (lie.tell)(d, lie.most);
                    }
                });
                format!("{:.1} %", 100.0 * share)
            });
            sizes.join(", ")
        };
        let everywhere = |together| {
            if !lie.scales {
                return "–".to_owned();
            }
            let sizes = [0.5, 0.95].map(|wanted| {
                let size = largest(together, wanted, lie.most, &|size, _, d| {
                    (lie.tell)(d, size);
                });
                format!("{size:.3}")
            });
            sizes.join(", ")
        };
        format!(
            "| {search} | {} | {auditor}, {} | {} | {} | {} | {} |",
            lie.field,
            theirs.name(),
            share(1),
            share(TOGETHER),
            everywhere(1),
            everywhere(TOGETHER),
        )
    }

    /// The share of audits, so many taken together, that accept what a lie makes of each ply, of which it knows whether
    /// it is a game's last and a number from 0 to 1.
    fn accepted(&self, together: u64, lie: impl Fn(bool, f64, &mut Disagreement)) -> f64 {
        let mut sampled = sampled(self.games);
        for game in &mut sampled {
            game.termination = self.termination;
        }
        let chunks: Vec<_> = sampled.chunks(CHUNK).collect();
        let found = |chance: u64| {
            let mut found = Disagreement::default();
            for span in sample(
                chunks[chance as usize % chunks.len()],
                0,
                AuditDepth::Full,
                Seed(chance),
            ) {
                let plies = &self.distances[span.game as usize];
                for ply in span.compared..span.end {
                    let mut distance = plies[ply as usize];
                    let luck = Seed(chance ^ 0x5eed).of_game(span.game).of_game(ply).0;
                    let luck = (luck >> 11) as f64 / (1_u64 << 53) as f64;
                    lie(ply as usize + 1 == plies.len(), luck, &mut distance);
                    found = found.and(distance);
                }
            }
            found
        };
        let agrees = |first: &u64| {
            let audits = (0..together).map(|next| found(first * together + next));
            let all = audits.fold(Disagreement::default(), Disagreement::and);
            self.tolerance.judge(&all) == Finding::Agrees
        };
        (0..AUDITS).filter(agrees).count() as f64 / AUDITS as f64
    }
}

/// The largest size, up to `most`, of which this share of audits accept as much; acceptance falls with size.
fn largest(wanted: f64, most: f64, accepted: impl Fn(f64) -> f64) -> f64 {
    let (mut low, mut high) = (0.0, most);
    for _ in 0..12 {
        let size = f64::midpoint(low, high);
        if accepted(size) >= wanted {
            low = size;
        } else {
            high = size;
        }
    }
    low
}
