//! What a match has shown, for people and as JSON.

use rookery_common::ids::ContentHash;
use rookery_common::rating::{Tally, Verdict};
use serde_json::{Value, json};
use shakmaty::ByColor;

use super::Standing;

/// A network as the report names it.
#[derive(Debug, Clone)]
pub struct Contestant {
    /// The name, for people.
    pub name: String,
    /// Its file's SHA-256.
    pub hash: ContentHash,
}

/// One line: games, wins, draws and losses, Elo with its interval, the test.
pub fn line(standing: &Standing) -> String {
    let tally = &standing.tally;
    let mut line = format!("+{} ={} -{}", tally.wins, tally.draws, tally.losses);
    // The score is that of the games. The one in the Elo estimate is pulled a little towards one half.
    if let (Some(score), Some(elo)) = (tally.score(), tally.elo()) {
        line.push_str(&format!(
            ", score {:.1} %, Elo {:+.0} ({:+.0} to {:+.0})",
            100.0 * score,
            elo.elo,
            elo.low,
            elo.high
        ));
    }
    if let Some(sprt) = &standing.sprt {
        let verdict = match sprt.verdict {
            Verdict::Continue => "undecided",
            Verdict::AcceptH1 => "stronger",
            Verdict::AcceptH0 => "not stronger",
        };
        line.push_str(&format!(
            ", LLR {:.2} ({:.2}, {:.2}) {verdict}",
            sprt.llr, sprt.lower, sprt.upper
        ));
    }
    line
}

/// A table in Markdown: the results by the first player's colour.
pub fn table(first: &str, standing: &Standing) -> String {
    let mut table =
        format!("| {first} has | games | wins | draws | losses |\n|---|---|---|---|---|\n");
    let ByColor { white, black } = &standing.by_color;
    for (name, tally) in [
        ("White", white),
        ("Black", black),
        ("both", &standing.tally),
    ] {
        let (wins, draws, losses) = (tally.wins, tally.draws, tally.losses);
        let games = tally.games();
        table.push_str(&format!(
            "| {name} | {games} | {wins} | {draws} | {losses} |\n"
        ));
    }
    table
}

/// The whole standing as one object.
pub fn json(first: &Contestant, second: &Contestant, standing: &Standing) -> Value {
    let mut object = tally(standing);
    object["a"] = json!({"name": first.name, "sha256": first.hash});
    object["b"] = json!({"name": second.name, "sha256": second.hash});
    object["sprt"] = json!(standing.sprt);
    object
}

/// Games, results, pairs, score and Elo as one object, and the results by the first player's colour.
pub fn tally(standing: &Standing) -> Value {
    let tally = &standing.tally;
    let results =
        |tally: &Tally| json!({"wins": tally.wins, "draws": tally.draws, "losses": tally.losses});
    json!({
        "games": tally.games(),
        "wins": tally.wins,
        "draws": tally.draws,
        "losses": tally.losses,
        "pairs": tally.pairs.counts,
        "score": tally.score(),
        "elo": tally.elo(),
        "white": results(&standing.by_color.white),
        "black": results(&standing.by_color.black),
    })
}
