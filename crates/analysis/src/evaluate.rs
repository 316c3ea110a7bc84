//! The command `evaluate`: what a network thinks of a position, with or without search.

use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context as _;
use clap::Args;
use rookery_common::chess::{GameHistory, fen};
use rookery_common::output;
use rookery_common::params::SearchParams;
use rookery_engine::branch::Branch;
use rookery_engine::search::{Report, search_position};
use rookery_engine::{Evaluator, EvaluatorError};
use serde::Serialize;
use shakmaty::Move;

use crate::drawing::{Caption, dot, planes, svg};
use crate::lines::answer_lines;
use crate::position_line::{self, Notation};

/// Flags of `evaluate`, but for the network and the device.
#[derive(Debug, Clone, Default, Args)]
pub struct Question {
    /// The position as FEN. [default: the standard start]
    #[arg(long, value_name = "FEN")]
    pub fen: Option<String>,
    /// Moves from there in UCI, separated by spaces; the network sees them as history.
    #[arg(long, value_name = "MOVES")]
    pub moves: Option<String>,
    /// Search with this many visits, and show visits, values and the best line.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(..=10_000_000))]
    pub visits: Option<u32>,
    /// Draw the search tree's most visited lines into this file, .svg or .dot, with visits N,
    /// values Q and priors P.
    #[arg(long, requires = "visits", value_name = "FILE")]
    pub tree: Option<PathBuf>,
    /// Draw this many positions of the tree.
    #[arg(long, default_value_t = 60, value_name = "N")]
    pub tree_nodes: usize,
    /// Draw what the network sees, and its policy with and without illegal moves, into this PNG
    /// file.
    #[arg(long, value_name = "FILE")]
    pub planes: Option<PathBuf>,
    /// Read positions from standard input as `encode` does; one answer a line.
    #[arg(long, conflicts_with_all = ["fen", "moves", "tree", "planes"])]
    pub batch: bool,
    /// Write castling as king takes rook.
    #[arg(long)]
    pub chess960: bool,
    /// Print JSON instead of a table.
    #[arg(long)]
    pub json: bool,
}

/// The answer for one position.
#[derive(Debug, PartialEq, Serialize)]
pub struct Answer {
    /// What the mover can expect.
    pub value: Value,
    /// The legal moves, the best first: by visits, then by prior.
    pub moves: Vec<MoveAnswer>,
    /// The best move, after a search.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub best: Option<String>,
    /// The best line, after a search.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pv: Option<Vec<String>>,
}

/// Probabilities that the mover wins, draws and loses.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Value {
    /// Win.
    pub w: f32,
    /// Draw.
    pub d: f32,
    /// Loss.
    pub l: f32,
}

/// One move.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MoveAnswer {
    /// The move in UCI.
    #[serde(rename = "move")]
    pub text: String,
    /// The policy's probability.
    pub prior: f32,
    /// Visits, after a search.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub visits: Option<u32>,
    /// The mover's value from -1 to 1, if a search visited the move.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub q: Option<f32>,
}

/// Answers the position of the flags, or those on standard input. Pictures call the network `name`.
///
/// # Errors
///
/// If a position cannot be used, or the device fails.
pub fn run(
    args: &Question,
    name: &str,
    mut evaluator: Box<dyn Evaluator + Send>,
) -> anyhow::Result<ExitCode> {
    let visits = args.visits.unwrap_or(0);
    let notation = Notation::from_flag(args.chess960);
    if args.batch {
        let output = BufWriter::new(std::io::stdout().lock());
        return answer_lines(std::io::stdin().lock(), output, |game| {
            answer(game, visits, &mut evaluator, notation)
        });
    }
    let moves = args.moves.as_deref().unwrap_or_default();
    let start = args.fen.as_deref().unwrap_or("startpos");
    let game = position_line::from_parts(start, moves.split_whitespace())?;
    if let Some(path) = &args.planes {
        draw_planes(path, &game, &mut evaluator)?;
    }
    let shown = args.tree.as_ref().map_or(1, |_| args.tree_nodes);
    let report = search(&game, visits, &mut evaluator, shown)?;
    if let Some(path) = &args.tree {
        draw_tree(path, &game, report.tree.as_ref(), name)?;
    }
    let answer = describe(report, &game, visits, notation);
    if args.json {
        output::print_json(&answer)?;
    } else {
        output::print(&for_people(&answer))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// What the network thinks of the position on the board.
///
/// # Errors
///
/// If the device fails.
pub fn answer(
    game: &GameHistory,
    visits: u32,
    evaluator: &mut dyn Evaluator,
    notation: Notation,
) -> anyhow::Result<Answer> {
    let report = search(game, visits, evaluator, 1)?;
    Ok(describe(report, game, visits, notation))
}

fn search(
    game: &GameHistory,
    visits: u32,
    evaluator: &mut dyn Evaluator,
    shown: usize,
) -> Result<Report, EvaluatorError> {
    search_position(game, &SearchParams::default(), visits, evaluator, shown)
}

fn draw_planes(
    path: &Path,
    game: &GameHistory,
    evaluator: &mut dyn Evaluator,
) -> anyhow::Result<()> {
    let file = File::create(path).with_context(|| not_written(path))?;
    planes::draw(game, evaluator, BufWriter::new(file)).with_context(|| not_written(path))
}

fn draw_tree(
    path: &Path,
    game: &GameHistory,
    tree: Option<&Branch>,
    network: &str,
) -> anyhow::Result<()> {
    let tree = tree.context("the game is over: there is no tree to draw")?;
    let position = game.position();
    let name = Path::new(network).file_name();
    let network = name.map_or(network.into(), |name| name.to_string_lossy());
    let caption = Caption {
        network: network.into_owned(),
        fen: fen(position),
    };
    let text = match path.extension().and_then(|extension| extension.to_str()) {
        Some("svg") => svg::write(tree, position, &caption),
        Some("dot" | "gv") => dot::write(tree, position, &caption),
        _ => anyhow::bail!("{} is neither .svg nor .dot", path.display()),
    };
    std::fs::write(path, text).with_context(|| not_written(path))
}

fn not_written(path: &Path) -> String {
    format!("{} was not written", path.display())
}

fn describe(report: Report, game: &GameHistory, visits: u32, notation: Notation) -> Answer {
    let searched = visits > 0;
    let mut moves: Vec<MoveAnswer> = report
        .moves
        .iter()
        .map(|m| MoveAnswer {
            text: notation.write(game, m.m),
            prior: m.prior,
            visits: searched.then_some(m.visits),
            q: m.q.filter(|_| searched),
        })
        .collect();
    moves.sort_by(|a, b| b.visits.cmp(&a.visits).then(b.prior.total_cmp(&a.prior)));
    let Report {
        value, best, pv, ..
    } = report;
    Answer {
        value: Value {
            w: value.win,
            d: value.draw,
            l: value.loss,
        },
        moves,
        best: best.filter(|_| searched).map(|m| notation.write(game, m)),
        pv: searched.then(|| line(game, &pv, notation)),
    }
}

fn line(game: &GameHistory, moves: &[Move], notation: Notation) -> Vec<String> {
    let mut game = game.clone();
    let write = |m: &Move| {
        let text = notation.write(&game, *m);
        game.push(*m);
        text
    };
    moves.iter().map(write).collect()
}

/// The answer as a table of the ten best moves.
fn for_people(answer: &Answer) -> String {
    let Value { w, d, l } = answer.value;
    let percent = |share: f32| share * 100.0;
    let mut text = format!(
        "win {:.1} %, draw {:.1} %, loss {:.1} %\n",
        percent(w),
        percent(d),
        percent(l)
    );
    for m in answer.moves.iter().take(10) {
        text += &format!("{:<6} {:6.2} %", m.text, percent(m.prior));
        if let Some(visits) = m.visits {
            text += &format!(" {visits:8} visits");
        }
        if let Some(q) = m.q {
            text += &format!("  {q:+.3}");
        }
        text.push('\n');
    }
    if let Some(pv) = &answer.pv {
        text += &format!("best line: {}\n", pv.join(" "));
    }
    text
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use rookery_backend_cpu::{CpuEvaluator, CpuNetwork};
    use rookery_common::network::NetworkSpec;
    use rookery_model::Weights;

    use super::*;

    fn ask(line: &str, visits: u32) -> Answer {
        let weights = Weights::random(NetworkSpec::resnet(1, 8), 1).unwrap();
        let network = CpuNetwork::new(&weights).unwrap();
        let mut evaluator = CpuEvaluator::new(Arc::new(network));
        let game = position_line::parse(line).unwrap();
        answer(&game, visits, &mut evaluator, Notation::ByPosition).unwrap()
    }

    #[test]
    fn an_evaluation_has_the_keys_that_scripts_lean_on() {
        let answer = ask("startpos", 0);
        let json = serde_json::to_value(&answer).unwrap();
        assert_eq!(json.as_object().unwrap().len(), 2, "{json}");
        assert_eq!(json["moves"][0].as_object().unwrap().len(), 2, "{json}");
        let priors: f32 = answer.moves.iter().map(|m| m.prior).sum();
        let value = answer.value;
        assert!((priors - 1.0).abs() < 1e-4 && (value.w + value.d + value.l - 1.0).abs() < 1e-4);
    }

    #[test]
    fn a_search_finds_mate_and_writes_the_line() {
        let answer = ask("7k/8/5K2/8/8/8/8/6Q1 w - - 0 1", 2000);
        assert_eq!(answer.best.as_deref(), Some("g1g7"));
        assert_eq!(answer.pv.unwrap()[0], "g1g7");
        // It is seen before it is visited.
        assert_eq!(answer.moves.iter().filter_map(|m| m.visits).sum::<u32>(), 1);
    }

    #[test]
    fn castling_is_written_as_in_the_position() {
        let answer = ask("r3k2r/8/8/8/8/8/8/R3K2R w KQkq - 0 1", 0);
        assert!(answer.moves.iter().any(|m| m.text == "e1g1"));
    }
}
