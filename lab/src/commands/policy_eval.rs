//! `policy-eval`: how much better searching is than the network alone, as a strong engine sees it.

use std::path::PathBuf;
use std::sync::atomic::Ordering;

use anyhow::Context as _;
use rookery_cli::flags::threads_or_cores;
use rookery_cli::pgn::{BytesRead, each_game, total_bytes};
use rookery_cli::{Screen, Shutdown, network_file};
use rookery_common::chess::GameHistory;
use rookery_common::command_line::read_params;
use rookery_common::output;
use rookery_common::params::{RunParams, SearchParams};
use rookery_engine::Evaluator;
use rookery_engine::search::{Report, search_positions};
use rookery_uci::Launch;
use serde_json::{Value, json};

use super::flags::DeviceArgs;
use crate::analyst::{Analyst, side_by_side};
use crate::policy_eval::loss::{Judgement, Tally};
use crate::policy_eval::sample::Choice;

/// Positions that are searched side by side.
const SIDE_BY_SIDE: usize = 128;

/// What there is to say where nothing came out.
const STOPPED: &str = "stopped before a position was judged";

/// Flags of `policy-eval`.
#[derive(Debug, clap::Args)]
pub struct PolicyEvalArgs {
    /// The network, as a file of Rookery or of Lc0 (.pb.gz).
    #[arg(long, value_name = "FILE")]
    pub network: PathBuf,
    /// PGN files, plain, gzip or zstd. A number of games is chosen at random from all files, and one position
    /// from each.
    #[arg(long, value_name = "FILE", required = true, num_args = 1..)]
    pub pgn: Vec<PathBuf>,
    /// Searches to judge: files of run parameters, whose section selfplay.search is used. [default: the
    /// defaults]
    #[arg(long, value_name = "FILE", num_args = 1..)]
    pub params: Vec<PathBuf>,
    /// Positions to judge, each of another game.
    #[arg(long, value_name = "N", default_value_t = 500, value_parser = clap::value_parser!(u32).range(1..))]
    pub positions: u32,
    /// The engine, a program that speaks UCI.
    #[arg(long, value_name = "PROGRAM", default_value = "stockfish")]
    pub engine: PathBuf,
    /// Nodes that it searches after each legal move.
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u64).range(1..))]
    pub nodes: u64,
    /// The seed of the choice of positions.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Print the results as one JSON object.
    #[arg(long)]
    pub json: bool,
    /// Where to compute.
    #[command(flatten)]
    pub device: DeviceArgs,
}

/// A way to find a policy: by the network alone, or by a search.
struct Method {
    name: String,
    params: SearchParams,
    visits: u32,
    tally: Tally,
}

/// What came out.
struct Judged {
    engine: String,
    positions: usize,
    /// The network alone, then each search.
    methods: Vec<Method>,
}

/// Judges, and prints what came out.
///
/// # Errors
///
/// If a file cannot be read, the engine does not start or fails, or the network cannot be computed.
pub fn execute(args: &PolicyEvalArgs, screen: &Screen, shutdown: &Shutdown) -> anyhow::Result<()> {
    let judged = judge(args, screen, shutdown)?;
    if args.json {
        output::print_json(&judged.json())
    } else {
        output::print(&judged.table())
    }
}

fn judge(args: &PolicyEvalArgs, screen: &Screen, shutdown: &Shutdown) -> anyhow::Result<Judged> {
    let mut methods = methods(&args.params)?;
    let weights = network_file::read(&args.network)?;
    let mut evaluator = args.device.open_for(&weights)?.evaluator(&weights)?;
    let positions = positions(args, screen, shutdown)?;
    let launch = Launch::new(&args.engine);
    let analysts: anyhow::Result<Vec<Analyst>> = (0..threads_or_cores(args.device.threads))
        .map(|_| Analyst::start(&launch, args.nodes))
        .collect();
    let mut analysts = analysts?;
    let engine = analysts[0].name().to_owned();
    let mut task = screen.task("positions", positions.len() as u64);
    let mut done = 0;
    for positions in positions.chunks(SIDE_BY_SIDE) {
        if shutdown.is_requested() {
            break;
        }
        let reports = searched(&methods, positions, &mut evaluator)?;
        let judgements = judgements(&mut analysts, positions, &reports[0])?;
        for (method, reports) in methods.iter_mut().zip(&reports) {
            for (report, judgement) in reports.iter().zip(&judgements) {
                method.tally.add(report, judgement);
            }
        }
        done += positions.len();
        task.at(done as u64, "");
    }
    anyhow::ensure!(done > 0, STOPPED);
    Ok(Judged {
        engine,
        positions: done,
        methods,
    })
}

impl Judged {
    fn json(&self) -> Value {
        let alone = &self.methods[0].tally;
        let rows: Vec<Value> = self.methods.iter().map(|m| m.json(alone)).collect();
        json!({"engine": self.engine, "positions": self.positions, "methods": rows})
    }

    fn table(&self) -> String {
        let mut table = format!(
            "positions: {}, judged by {}\nwhat policy and best move lose, and the error of the value, in \
             hundredths of a point:\n",
            self.positions, self.engine
        );
        table.push_str(&format!(
            "{:>10} {:>16} {:>10} {:>10}  by\n",
            "policy", "gain (95 %)", "best move", "value"
        ));
        let alone = &self.methods[0].tally;
        for method in &self.methods {
            table.push_str(&method.row(alone));
        }
        table
    }
}

impl Method {
    fn json(&self, alone: &Tally) -> Value {
        let (gain, width) = self.tally.policy.gain_over(&alone.policy);
        let interval = width.map(|width| [gain - width, gain + width]);
        json!({
            "method": self.name,
            "visits": self.visits,
            "policy_loss": self.tally.policy.mean(),
            "policy_gain": gain,
            "policy_gain_interval": interval,
            "best_move_loss": self.tally.best.mean(),
            "value_error": self.tally.value.mean().sqrt(),
        })
    }

    fn row(&self, alone: &Tally) -> String {
        let (gain, width) = self.tally.policy.gain_over(&alone.policy);
        let gain = match (self.visits, width) {
            (0, _) => String::new(),
            (_, Some(width)) => format!("{:+.2} ± {:.2}", 100.0 * gain, 100.0 * width),
            (_, None) => format!("{:+.2}", 100.0 * gain),
        };
        format!(
            "{:>10.2} {gain:>16} {:>10.2} {:>10.2}  {}\n",
            100.0 * self.tally.policy.mean(),
            100.0 * self.tally.best.mean(),
            100.0 * self.tally.value.mean().sqrt(),
            self.name,
        )
    }
}

/// The network alone, and each search.
fn methods(files: &[PathBuf]) -> anyhow::Result<Vec<Method>> {
    let method = |name: String, params: SearchParams, visits| Method {
        name,
        params,
        visits,
        tally: Tally::default(),
    };
    let alone = method("the network alone".to_owned(), SearchParams::default(), 0);
    let mut methods = vec![alone];
    for path in files {
        let params = read_params(path, RunParams::from_text)?.selfplay.search;
        let visits = params.visits;
        methods.push(method(path.display().to_string(), params, visits));
    }
    if files.is_empty() {
        let params = RunParams::default().selfplay.search;
        let visits = params.visits;
        methods.push(method("the default search".to_owned(), params, visits));
    }
    Ok(methods)
}

/// A position each of some of all the games.
fn positions(
    args: &PolicyEvalArgs,
    screen: &Screen,
    shutdown: &Shutdown,
) -> anyhow::Result<Vec<GameHistory>> {
    let mut choice = Choice::new(args.positions as usize, args.seed);
    let read = BytesRead::default();
    let mut task = screen.task("bytes of PGN", total_bytes(&args.pgn)?);
    for path in &args.pgn {
        each_game(path, &read, |game| {
            if let Ok(game) = game {
                choice.offer(game);
            }
            task.at(read.load(Ordering::Relaxed), "");
            Ok(shutdown.flow())
        })?;
    }
    anyhow::ensure!(!shutdown.is_requested(), STOPPED);
    let positions = choice.positions();
    anyhow::ensure!(
        !positions.is_empty(),
        "there is no game to take a position of in these files"
    );
    Ok(positions)
}

/// What each method reports of each position.
fn searched(
    methods: &[Method],
    positions: &[GameHistory],
    evaluator: &mut dyn Evaluator,
) -> anyhow::Result<Vec<Vec<Report>>> {
    let games: Vec<&GameHistory> = positions.iter().collect();
    let search = |method: &Method| {
        let reports = search_positions(&games, &method.params, method.visits, evaluator);
        reports.context("the network failed")
    };
    methods.iter().map(search).collect()
}

/// What the engines say of each position, in their order.
fn judgements(
    analysts: &mut [Analyst],
    positions: &[GameHistory],
    reports: &[Report],
) -> anyhow::Result<Vec<Judgement>> {
    let items: Vec<(&GameHistory, &Report)> = positions.iter().zip(reports).collect();
    side_by_side(analysts, &items, |analyst, (game, report)| {
        let moves: Vec<_> = report.moves.iter().map(|m| m.m).collect();
        Judgement::ask(analyst, game, &moves)
    })
}

#[cfg(test)]
mod tests {
    use rookery_cli::testing;
    use rookery_common::network::NetworkSpec;
    use rookery_model::Weights;

    use super::*;

    const GAMES: &str = "[Result \"0-1\"]\n\n1. f3 e5 2. g4 Qh4# 0-1\n\n\
                         [Result \"1-0\"]\n\n1. e4 e5 2. Qh5 Ke7 3. Qxe5# 1-0\n\n";

    fn judged(flags: &str, pgn: &str, params: &str) -> anyhow::Result<Judged> {
        let dir = tempfile::tempdir()?;
        Weights::random(NetworkSpec::resnet(1, 8), 1)?
            .write(&dir.path().join("net.safetensors"))?;
        std::fs::write(dir.path().join("games.pgn"), pgn)?;
        std::fs::write(dir.path().join("run.toml"), params)?;
        let line = format!(
            "policy-eval --device cpu --network DIR/net.safetensors --pgn DIR/games.pgn --nodes 100 --threads 2 {flags}"
        );
        let args: PolicyEvalArgs = testing::flags(dir.path(), &line)?;
        judge(&args, &Screen::hidden(), &Shutdown::default())
    }

    #[test]
    fn each_search_is_judged_beside_the_network_alone() {
        let gumbel = "[selfplay.search]\nvisits = 20\nroot = { kind = \"gumbel\" }\n";
        let flags = "--positions 30 --params DIR/run.toml";
        let judged = judged(flags, &GAMES.repeat(20), gumbel).unwrap();
        assert_eq!((judged.positions, judged.methods.len()), (30, 2));
        let rows = judged.json()["methods"].clone();
        assert_eq!(
            (&rows[0]["visits"], &rows[1]["visits"]),
            (&json!(0), &json!(20))
        );
        for row in rows.as_array().unwrap() {
            for name in ["policy_loss", "best_move_loss", "value_error"] {
                let loss = row[name].as_f64().unwrap();
                assert!((0.0..=1.0).contains(&loss), "{name}: {row}");
            }
        }
        let gain = rows[1]["policy_gain"].as_f64().unwrap();
        let loss = |place: usize| rows[place]["policy_loss"].as_f64().unwrap();
        assert!((loss(0) - loss(1) - gain).abs() < 1e-9);
        assert_eq!(rows[0]["policy_gain"], json!(0.0));
        let interval = rows[1]["policy_gain_interval"].as_array().unwrap();
        assert!(interval[0].as_f64() < Some(gain), "{interval:?}");
        // The table shows hundredths of what the JSON has.
        let table = judged.table();
        let shown = format!("{:.2}", 100.0 * loss(1));
        assert!(table.contains(&shown) && table.contains('±'), "{table}");
    }

    #[test]
    fn one_position_has_no_interval() {
        let judged = judged("--positions 1", GAMES, "").unwrap();
        let row = judged.json()["methods"][1].clone();
        assert!(row["policy_gain"].is_f64(), "{row}");
        assert!(row["policy_gain_interval"].is_null(), "{row}");
        let table = judged.table();
        assert!(!table.contains('±'), "{table}");
    }

    #[test]
    fn what_cannot_be_judged_is_said() {
        let error = judged("", "", "").err().unwrap().to_string();
        assert!(error.contains("no game"), "{error}");
        let error = judged("--positions 0", GAMES, "").err().unwrap();
        assert!(error.to_string().contains("--positions"), "{error}");
        let flags = "--params DIR/run.toml";
        let error = judged(flags, GAMES, "[selfplay.search]\nvisits = 0\n")
            .err()
            .unwrap();
        assert!(
            error.to_string().contains("run.toml are not valid"),
            "{error}"
        );
    }
}
