//! Rows of tables that several pages show: games, matches, workers.

use jiff::Timestamp;
use rookery_common::ids::{GameId, MatchId, NetworkNumber, RunName};
use rookery_common::protocol::matches::{GameInfo, MatchInfo, MatchPurpose, MatchStatus};
use rookery_common::protocol::people::WorkerInfo;
use rookery_common::rating::gate::GateDecision;
use rookery_common::rating::pentanomial::Tally;

use super::layout::ColumnHead;
use super::text;
use crate::db::ACTIVE;

#[derive(Debug)]
pub(super) struct GameRow {
    pub(super) id: GameId,
    pub(super) run: RunName,
    pub(super) kind: &'static str,
    pub(super) match_id: Option<MatchId>,
    pub(super) solved: Option<&'static str>,
    pub(super) white: NetworkNumber,
    pub(super) black: NetworkNumber,
    pub(super) result: &'static str,
    pub(super) reason: &'static str,
    pub(super) plies: u32,
    /// The opening's code and name.
    pub(super) opening: Option<(String, String)>,
    pub(super) contributor: String,
    pub(super) at: String,
    pub(super) ago: String,
}

impl GameRow {
    pub(super) fn new(game: GameInfo, now: Timestamp) -> Self {
        Self {
            id: game.id,
            kind: text::kind(game.kind),
            match_id: game.match_id,
            solved: game
                .solved
                .map(|solved| if solved { "solved" } else { "missed" }),
            white: game.white,
            black: game.black,
            result: text::result(game.result),
            reason: game.termination.words(),
            plies: game.plies,
            opening: game.eco.zip(game.opening_name),
            contributor: game.contributor,
            ago: text::ago(now, &game.accepted_at),
            at: game.accepted_at,
            run: game.run,
        }
    }

    pub(super) fn all(games: Vec<GameInfo>, now: Timestamp) -> Vec<Self> {
        games.into_iter().map(|game| Self::new(game, now)).collect()
    }
}

/// The heads by which a list of games can be sorted.
#[derive(Debug)]
pub(super) struct GameHeads {
    pub(super) game: ColumnHead,
    pub(super) plies: ColumnHead,
}

#[derive(Debug)]
pub(super) struct MatchRow {
    pub(super) id: MatchId,
    pub(super) purpose: &'static str,
    pub(super) is_gate: bool,
    pub(super) status: &'static str,
    pub(super) candidate: NetworkNumber,
    pub(super) opponent: NetworkNumber,
    pub(super) tally: Tally,
    pub(super) max_games: u64,
    pub(super) llr: Option<LlrBar>,
    pub(super) standing: Option<String>,
    pub(super) elo: Option<String>,
    pub(super) elo_short: String,
    pub(super) opened_at: String,
    pub(super) ago: String,
}

impl MatchRow {
    pub(super) fn new(info: &MatchInfo, now: Timestamp) -> Self {
        let is_gate = info.purpose == MatchPurpose::Gate;
        Self {
            id: info.id,
            purpose: if is_gate { "gate" } else { "rating" },
            is_gate,
            status: info.status.name(),
            candidate: info.candidate,
            opponent: info.opponent,
            tally: info.tally,
            max_games: 2 * u64::from(info.pair_limit),
            llr: info
                .in_order
                .map_or(info.llr, |in_order| in_order.llr)
                .zip(info.llr_bounds)
                .and_then(|(llr, bounds)| LlrBar::new(llr, bounds)),
            standing: standing(info),
            elo: elo(info),
            elo_short: info.elo.map_or_else(
                || "–".to_owned(),
                |(elo, low, high)| format!("{} ± {:.0}", text::signed(elo), (high - low) / 2.0),
            ),
            opened_at: info.opened_at.clone(),
            ago: text::ago(now, &info.opened_at),
        }
    }
}

/// The difference in strength that the games show, and how far it can be believed.
fn elo(info: &MatchInfo) -> Option<String> {
    let ((elo, low, high), los) = info.elo.zip(info.los)?;
    let [elo, low, high] = [elo, low, high].map(text::signed);
    let los = text::likelihood(los);
    let ended = early_end(info);
    Some(format!(
        "{elo} logistic Elo, 95 % interval {low} to {high}; likelihood of superiority {los}.{ended}"
    ))
}

/// Why a gate match ended before its limit, and what that means; empty if it did not.
fn early_end(info: &MatchInfo) -> &'static str {
    let decision = match info.status {
        MatchStatus::Promoted => GateDecision::Promote,
        MatchStatus::Rejected => GateDecision::Reject,
        MatchStatus::Open | MatchStatus::Finished => return "",
    };
    let crossed = |(llr, (low, high)): (f64, (f64, f64))| llr <= low || llr >= high;
    if info.llr.zip(info.llr_bounds).is_some_and(crossed) {
        return " The test stopped as soon as it could decide, which overstates the difference.";
    }
    // The missing pairs count as what speaks most against the decision.
    let mut tally = info.tally;
    let missing = u64::from(info.pair_limit).saturating_sub(tally.pairs.pairs());
    if decision == GateDecision::Promote {
        tally.losses += 2 * missing;
        tally.pairs.counts[0] += missing;
    } else {
        tally.wins += 2 * missing;
        tally.pairs.counts[4] += missing;
    }
    let verdict = info.rule.decide(&tally);
    if missing > 0 && verdict.is_ok_and(|verdict| verdict.decision == decision) {
        " The match ended before its limit: the remaining games could not have changed the verdict."
    } else {
        ""
    }
}

/// What has arrived of an open match, and for what it waits.
fn standing(info: &MatchInfo) -> Option<String> {
    if info.status != MatchStatus::Open {
        return None;
    }
    let arrived = info.tally.pairs.pairs();
    let mut text = format!(
        "{} of {} in",
        text::count(arrived),
        text::counted(info.pair_limit, "pair")
    );
    if info.pairs_playing > 0 {
        text.push_str(&format!(
            ", {} being played",
            text::count(info.pairs_playing)
        ));
    }
    let silent = info.pairs_out.saturating_sub(info.pairs_playing);
    if silent > 0 {
        text.push_str(&format!(", {} whose worker is silent", text::count(silent)));
    }
    text.push('.');
    if let Some(in_order) = &info.in_order {
        text.push_str(&format!(
            " Pairs decide in their order: {} counted so far",
            text::count(in_order.pairs)
        ));
        if in_order.pairs < arrived {
            text.push_str(
                ". The others wait for earlier ones, so the result may look decided before it is",
            );
        }
        text.push('.');
    }
    Some(text)
}

/// The log-likelihood ratio of a sequential test between its bounds, as a bar of 100 units.
#[derive(Debug)]
pub(super) struct LlrBar {
    pub(super) text: String,
    pub(super) low: String,
    pub(super) high: String,
    pub(super) x: f64,
    pub(super) width: f64,
    pub(super) zero: f64,
    pub(super) promising: bool,
}

impl LlrBar {
    /// None if the bounds do not lie around zero.
    fn new(llr: f64, (low, high): (f64, f64)) -> Option<Self> {
        if !(low < 0.0 && high > 0.0 && llr.is_finite()) {
            return None;
        }
        let at = |n: f64| 100.0 * (n.clamp(low, high) - low) / (high - low);
        let (zero, end) = (at(0.0), at(llr));
        Some(Self {
            text: text::decimal(llr, 2),
            low: text::decimal(low, 2),
            high: text::decimal(high, 2),
            x: zero.min(end),
            width: (zero - end).abs(),
            zero,
            promising: llr >= 0.0,
        })
    }
}

#[derive(Debug)]
pub(super) struct WorkerRow {
    pub(super) contributor: String,
    pub(super) name: String,
    pub(super) backend: String,
    pub(super) doing: &'static str,
    pub(super) speed: String,
    pub(super) version: String,
    pub(super) at: String,
    pub(super) ago: String,
}

impl WorkerRow {
    pub(super) fn new(worker: WorkerInfo, now: Timestamp) -> Self {
        let speed = f64::from(worker.evals_per_second);
        let heard = worker.last_seen.parse::<Timestamp>();
        let active = heard.is_ok_and(|heard| now.duration_since(heard) <= ACTIVE);
        Self {
            contributor: worker.contributor,
            name: worker.name,
            backend: worker.backend,
            doing: match worker.job_kind {
                _ if !active => "–",
                Some(kind) => text::kind(kind),
                None => "waiting",
            },
            speed: if active && speed > 0.0 {
                text::rate(speed)
            } else {
                "–".to_owned()
            },
            version: worker.version,
            ago: text::ago(now, &worker.last_seen),
            at: worker.last_seen,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rookery_common::protocol::jobs::WorkKind;
    use rookery_common::rating::pentanomial::Pentanomial;
    use rookery_common::rating::sprt::SprtParams;
    use serde_json::json;

    /// A sequential gate match of at most 60 pairs, of which these were won by two to nothing and lost so.
    fn gate(status: &str, won: u64, lost: u64) -> MatchInfo {
        let params = SprtParams::default();
        let tally = Tally {
            wins: 2 * won,
            draws: 0,
            losses: 2 * lost,
            pairs: Pentanomial {
                counts: [lost, 0, 0, 0, won],
            },
        };
        let sprt = params.status(&tally.pairs).unwrap();
        serde_json::from_value(json!({
            "id": 1, "run": "main", "purpose": "gate", "status": status, "candidate": 3, "opponent": 2,
            "tally": tally, "rule": {"kind": "sprt", "params": params, "max_pairs": 60},
            "pair_limit": 60, "llr": sprt.llr, "llr_bounds": [sprt.lower, sprt.upper],
            "elo": [1.0, -1.0, 3.0], "los": 0.5, "opened_at": "2030-01-01T00:00:00Z",
        }))
        .unwrap()
    }

    #[test]
    fn a_match_says_why_it_ended_before_its_limit() {
        let overstated =
            " The test stopped as soon as it could decide, which overstates the difference.";
        let settled = " The match ended before its limit: the remaining games could not have changed the verdict.";
        for (what, status, won, lost, expected) in [
            ("no verdict within the limit", "rejected", 30, 30, ""),
            ("two pairs are missing", "rejected", 28, 30, settled),
            ("two pairs are missing", "promoted", 31, 27, settled),
            (
                "the missing pairs matter: an operator rejected it",
                "rejected",
                25,
                25,
                "",
            ),
            ("a bound was crossed", "promoted", 50, 0, overstated),
            ("it goes on", "open", 10, 0, ""),
        ] {
            let info = gate(status, won, lost);
            assert_eq!(early_end(&info), expected, "{what}: {info:?}");
        }
    }

    #[test]
    fn a_worker_that_is_away_does_nothing() {
        let now: Timestamp = "2030-01-01T12:00:00Z".parse().unwrap();
        let worker = |last_seen: &str| WorkerInfo {
            contributor: "ada".to_owned(),
            name: "w".to_owned(),
            backend: "cpu-f32".to_owned(),
            version: "0.1.0".to_owned(),
            evals_per_second: 250.0,
            job_kind: Some(WorkKind::Match),
            last_seen: last_seen.to_owned(),
        };
        for (last_seen, doing, speed) in [
            ("2030-01-01T11:50:00Z", "match", "250"),
            ("2030-01-01T11:49:59Z", "–", "–"),
        ] {
            let row = WorkerRow::new(worker(last_seen), now);
            assert_eq!((row.doing, row.speed.as_str()), (doing, speed));
        }
    }

    #[test]
    fn the_bar_grows_from_zero_and_stays_between_the_bounds() {
        let bar = LlrBar::new(1.5, (-3.0, 3.0)).unwrap();
        assert_eq!((bar.x, bar.width, bar.promising), (50.0, 25.0, true));
        let bar = LlrBar::new(-9.0, (-3.0, 3.0)).unwrap();
        assert_eq!((bar.x, bar.width, bar.promising), (0.0, 50.0, false));
        assert!(LlrBar::new(0.0, (1.0, 2.0)).is_none());
    }
}
