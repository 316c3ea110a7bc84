//! What the chunks of the ledger make of every match, against what the coordinator says of it.
//!
//! ```text
//! chunks, in the ledger's order ─> replay: tally, status ─┐
//! matches, networks, best, as the coordinator tells them ─┴─> compare: each gate was decided once,
//!                                                             and everything follows from that
//! ```
//!
//! The rule is applied here from the games alone, by what `docs/trust.md` says of it: a gate's pairs
//! count in the order of their numbers, one that is missing counts against whatever the others
//! decide, and what comes after the decision counts for nothing.

use std::collections::{BTreeMap, HashMap, HashSet};

use anyhow::bail;
use rookery_common::chunk::{Caps, GameKind, Side, read};
use rookery_common::ids::{ContentHash, JobId, MatchId, NetworkNumber};
use rookery_common::protocol::matches::{MatchInfo, MatchPurpose, MatchStatus};
use rookery_common::protocol::networks::{NetworkInfo, NetworkStatus};
use rookery_common::rating::{GameScore, GateDecision, GateRule, RatingError, Tally};

/// A game of a match.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Scored {
    pair: u32,
    /// The candidate's side.
    candidate: Side,
    /// What the candidate scored.
    score: GameScore,
}

/// The chunks of every match, each a list of games, in the order of the ledger.
pub(crate) type Played = BTreeMap<MatchId, Vec<Vec<Scored>>>;

/// What the coordinator tells of a run.
pub(crate) struct RunSnapshot {
    /// All matches, the oldest first.
    pub(crate) matches: Vec<MatchInfo>,
    pub(crate) networks: Vec<NetworkInfo>,
    pub(crate) best: Option<NetworkNumber>,
}

/// What the comparison found.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Found {
    /// Gates that were decided.
    pub(crate) decided: u64,
    pub(crate) promotions: u64,
    pub(crate) rejections: u64,
    /// What does not agree, in words.
    pub(crate) wrong: Vec<String>,
}

/// The job and the games of a match's chunk.
///
/// # Errors
///
/// If it is no chunk of a match.
pub(crate) fn games_of(bytes: &[u8]) -> anyhow::Result<(JobId, Vec<Scored>)> {
    let (header, games) = read(bytes, &Caps::default())?;
    let mut scored = Vec::with_capacity(games.len());
    for game in games {
        let GameKind::Match { pair, candidate } = game.kind else {
            bail!("a chunk of a match holds another game");
        };
        let score = GameScore::of(game.end.result, candidate.into());
        scored.push(Scored {
            pair,
            candidate,
            score,
        });
    }
    Ok((header.job, scored))
}

/// What a match has come to.
struct Replay {
    status: MatchStatus,
    tally: Tally,
    /// Games that were played before.
    repeated: u64,
}

/// Scores of a pair, with the candidate as White and as Black.
type Pair = [Option<GameScore>; 2];

fn replay(
    purpose: MatchPurpose,
    rule: &GateRule,
    chunks: &[Vec<Scored>],
) -> Result<Replay, RatingError> {
    let mut pairs: BTreeMap<u32, Pair> = BTreeMap::new();
    let mut repeated = 0;
    let mut end = None;
    for chunk in chunks {
        for game in chunk {
            let [white, black] = pairs.entry(game.pair).or_default();
            let place = match game.candidate {
                Side::White => white,
                Side::Black => black,
            };
            repeated += u64::from(place.replace(game.score).is_some());
        }
        if purpose == MatchPurpose::Gate && end.is_none() {
            end = decided(rule, &pairs)?;
        }
    }
    let (status, tally) = end.unwrap_or_else(|| (MatchStatus::Open, tally_of(&pairs)));
    Ok(Replay {
        status,
        tally,
        repeated,
    })
}

fn tally_of(pairs: &BTreeMap<u32, Pair>) -> Tally {
    let mut tally = Tally::default();
    for pair in pairs.values() {
        if let [Some(white), Some(black)] = pair {
            tally.add_pair(*white, *black);
        }
    }
    tally
}

/// How these pairs decide a gate, if they do, and the tally of those that do.
fn decided(
    rule: &GateRule,
    pairs: &BTreeMap<u32, Pair>,
) -> Result<Option<(MatchStatus, Tally)>, RatingError> {
    let last = pairs.keys().next_back().copied().unwrap_or_default();
    let (mut tally, mut missing) = (Tally::default(), 0);
    for number in 0..=last {
        let Some([Some(white), Some(black)]) = pairs.get(&number) else {
            missing += 1;
            continue;
        };
        tally.add_pair(*white, *black);
        for (decision, status, against) in [
            (
                GateDecision::Promote,
                MatchStatus::Promoted,
                GameScore::Loss,
            ),
            (GateDecision::Reject, MatchStatus::Rejected, GameScore::Win),
        ] {
            let mut at_worst = tally;
            for _ in 0..missing {
                at_worst.add_pair(against, against);
            }
            if rule.decide(&at_worst)?.decision == decision {
                return Ok(Some((status, tally)));
            }
        }
    }
    Ok(None)
}

/// Compares the answers with what was played. `submitted` are the candidates that were taken.
///
/// # Errors
///
/// If a match's rule cannot be applied.
pub(crate) fn compare(
    snapshot: &RunSnapshot,
    played: &Played,
    submitted: &HashSet<ContentHash>,
) -> anyhow::Result<Found> {
    let mut wrong = Vec::new();
    for m in &snapshot.matches {
        let chunks = played.get(&m.id).map_or(&[][..], Vec::as_slice);
        check_match(m, &replay(m.purpose, &m.rule, chunks)?, &mut wrong);
    }
    let gates = check_line(snapshot, &mut wrong);
    for network in &snapshot.networks {
        check_network(network, gates.get(&network.number).copied(), &mut wrong);
    }
    for hash in submitted {
        let known = snapshot
            .networks
            .iter()
            .filter(|network| network.hash == *hash);
        let times = known.count();
        if times != 1 {
            wrong.push(format!("candidate {hash} is there {times} times"));
        }
    }
    let decided = gates.values().filter(|m| m.status != MatchStatus::Open);
    let decided = decided.count() as u64;
    let with = |status| {
        let networks = snapshot.networks.iter().filter(|n| n.status == status);
        networks.count() as u64
    };
    let promotions = with(NetworkStatus::Promoted);
    let rejections = with(NetworkStatus::Rejected);
    if promotions + rejections != decided {
        wrong.push(format!(
            "{decided} gates were decided, by {promotions} promotions and {rejections} rejections"
        ));
    }
    Ok(Found {
        decided,
        promotions,
        rejections,
        wrong,
    })
}

fn check_match(m: &MatchInfo, replay: &Replay, wrong: &mut Vec<String>) {
    let id = m.id;
    if replay.repeated > 0 {
        let times = replay.repeated;
        wrong.push(format!(
            "{times} games of match {id} are in the ledger twice"
        ));
    }
    if m.tally != replay.tally {
        let (stored, counted) = (m.tally, replay.tally);
        wrong.push(format!(
            "match {id} has the tally {stored:?}, its chunks give {counted:?}"
        ));
    }
    if m.purpose == MatchPurpose::Gate && m.status != replay.status {
        let (stored, due) = (m.status, replay.status);
        wrong.push(format!(
            "gate {id} is {stored:?}, by its chunks it is {due:?}"
        ));
    }
}

/// Every gate must have been played against the network that the one before it left best. Gives the
/// gates by their candidates.
fn check_line<'a>(
    snapshot: &'a RunSnapshot,
    wrong: &mut Vec<String>,
) -> HashMap<NetworkNumber, &'a MatchInfo> {
    let mut gates = HashMap::new();
    let mut best = NetworkNumber(0);
    let of_gates = |m: &&MatchInfo| m.purpose == MatchPurpose::Gate;
    for m in snapshot.matches.iter().filter(of_gates) {
        let (id, candidate, opponent) = (m.id, m.candidate, m.opponent);
        if opponent != best {
            wrong.push(format!(
                "gate {id} is against network {opponent}, best was {best}"
            ));
        }
        if gates.insert(candidate, m).is_some() {
            wrong.push(format!("network {candidate} has a second gate, {id}"));
        }
        if m.status == MatchStatus::Promoted {
            best = candidate;
        }
    }
    if snapshot.best != Some(best) {
        let stored = snapshot.best;
        wrong.push(format!(
            "best is {stored:?}, the last promotion was of {best}"
        ));
    }
    gates
}

fn check_network(network: &NetworkInfo, gate: Option<&MatchInfo>, wrong: &mut Vec<String>) {
    let due = match gate.map(|m| m.status) {
        _ if network.number == NetworkNumber(0) => NetworkStatus::Initial,
        Some(MatchStatus::Promoted) => NetworkStatus::Promoted,
        Some(MatchStatus::Rejected) => NetworkStatus::Rejected,
        Some(MatchStatus::Open | MatchStatus::Finished) | None => NetworkStatus::Candidate,
    };
    let (number, status) = (network.number, network.status);
    if status != due {
        wrong.push(format!(
            "network {number} is {status:?}, by its gate it is {due:?}"
        ));
    }
    if network.gate != gate.map(|m| m.id) {
        let named = network.gate;
        wrong.push(format!(
            "network {number} names gate {named:?}, which is not its own"
        ));
    }
}

#[cfg(test)]
mod tests;
