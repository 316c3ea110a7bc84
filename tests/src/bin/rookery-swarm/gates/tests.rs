use rookery_common::network::NetworkSpec;

use super::*;

const RULE: GateRule = GateRule::Fixed {
    games: 8,
    threshold: 0.5,
};

/// Both games of a pair with this score.
fn pair(pair: u32, score: GameScore) -> [Scored; 2] {
    [Side::White, Side::Black].map(|candidate| Scored {
        pair,
        candidate,
        score,
    })
}

fn after(chunks: &[Vec<Scored>]) -> Replay {
    replay(MatchPurpose::Gate, &RULE, chunks).expect("a rule")
}

#[test]
fn what_comes_after_the_decision_counts_for_nothing() {
    use GameScore::{Loss, Win};
    let first: Vec<Scored> = [pair(0, Win), pair(1, Win)].concat();
    assert_eq!(
        after(std::slice::from_ref(&first)).status,
        MatchStatus::Open
    );
    // The third pair decides; the fourth, in the same chunk, and the fifth are too late.
    let second = [pair(2, Win), pair(3, Loss)].concat();
    let third = pair(4, Loss).to_vec();
    let replay = after(&[first, second, third]);
    assert_eq!(replay.status, MatchStatus::Promoted);
    assert_eq!((replay.tally.wins, replay.tally.losses), (6, 0));
    assert_eq!(replay.repeated, 0);
}

#[test]
fn pairs_that_are_missing_count_against_the_decision() {
    use GameScore::{Loss, Win};
    let behind: Vec<Scored> = (2..4).flat_map(|number| pair(number, Win)).collect();
    let replay = after(std::slice::from_ref(&behind));
    assert_eq!(replay.status, MatchStatus::Open);
    assert_eq!(replay.tally.pairs.pairs(), 2);
    let replay = after(&[behind, [pair(0, Win), pair(1, Loss)].concat()]);
    assert_eq!(replay.status, MatchStatus::Promoted);
    assert_eq!(replay.tally.pairs.pairs(), 4);
}

#[test]
fn a_match_for_the_ratings_counts_all_its_pairs() {
    let chunks = [pair(0, GameScore::Win), pair(5, GameScore::Loss)].map(Vec::from);
    let replay = replay(MatchPurpose::Rating, &GateRule::None, &chunks).expect("a rule");
    assert_eq!(replay.tally.pairs.pairs(), 2);
}

/// A match whose candidate has won the first three pairs.
fn won(id: i64, candidate: u32, opponent: u32) -> (MatchInfo, Vec<Vec<Scored>>) {
    let chunks: Vec<Vec<Scored>> = (0..3)
        .map(|number| pair(number, GameScore::Win).to_vec())
        .collect();
    let info = MatchInfo {
        id: MatchId(id),
        run: "main".parse().expect("a name"),
        purpose: MatchPurpose::Gate,
        status: MatchStatus::Promoted,
        candidate: NetworkNumber(candidate),
        opponent: NetworkNumber(opponent),
        tally: after(&chunks).tally,
        rule: RULE,
        pair_limit: 3,
        pairs_out: 0,
        pairs_playing: 0,
        llr: None,
        in_order: None,
        llr_bounds: None,
        elo: None,
        los: None,
        reason: None,
        opened_at: String::new(),
        decided_at: None,
    };
    (info, chunks)
}

fn network(number: u32, status: NetworkStatus, gate: Option<i64>) -> NetworkInfo {
    NetworkInfo {
        run: "main".parse().expect("a name"),
        number: NetworkNumber(number),
        anchor: None,
        anchor_elo: None,
        hash: ContentHash::of(&number.to_le_bytes()),
        bytes: 1,
        spec: NetworkSpec::from_shape("2x16").expect("a shape"),
        status,
        gate: gate.map(MatchId),
        rating: None,
        puzzles: None,
        training_games: 0,
        positions: None,
        submitted_at: String::new(),
        file: String::new(),
        exports: Vec::new(),
    }
}

/// Two promotions, one after the other, and a candidate that waits.
fn story() -> (RunSnapshot, Played, HashSet<ContentHash>) {
    let (first, second) = (won(1, 1, 0), won(2, 2, 1));
    let networks = vec![
        network(0, NetworkStatus::Initial, None),
        network(1, NetworkStatus::Promoted, Some(1)),
        network(2, NetworkStatus::Promoted, Some(2)),
        network(3, NetworkStatus::Candidate, None),
    ];
    let submitted = networks[1..].iter().map(|network| network.hash).collect();
    let snapshot = RunSnapshot {
        matches: vec![first.0, second.0],
        networks,
        best: Some(NetworkNumber(2)),
    };
    let played = Played::from([(MatchId(1), first.1), (MatchId(2), second.1)]);
    (snapshot, played, submitted)
}

#[test]
fn promotions_that_follow_from_each_other_are_as_they_should_be() {
    let (snapshot, played, submitted) = story();
    let found = compare(&snapshot, &played, &submitted).expect("rules");
    let expected = Found {
        decided: 2,
        promotions: 2,
        ..Found::default()
    };
    assert_eq!(found, expected);
}

#[test]
fn whatever_does_not_follow_is_found() {
    type Change = fn(&mut RunSnapshot, &mut Played);
    let changes: [(&str, Change); 8] = [
        ("a pair counts twice", |snapshot, _| {
            let tally = &mut snapshot.matches[0].tally;
            tally.add_pair(GameScore::Win, GameScore::Win);
        }),
        ("a chunk is in the ledger twice", |_, played| {
            let chunks = played.get_mut(&MatchId(1)).expect("a match");
            chunks.push(chunks[2].clone());
        }),
        ("a chunk is not counted", |_, played| {
            played.get_mut(&MatchId(2)).expect("a match").pop();
        }),
        ("a decision is turned", |snapshot, _| {
            snapshot.matches[1].status = MatchStatus::Rejected;
        }),
        ("a candidate is decided about twice", |snapshot, played| {
            let (again, chunks) = won(3, 2, 2);
            snapshot.matches.push(again);
            played.insert(MatchId(3), chunks);
        }),
        ("a network is promoted without a gate", |snapshot, _| {
            snapshot.networks[3].status = NetworkStatus::Promoted;
        }),
        ("a promotion does not make best", |snapshot, _| {
            snapshot.best = Some(NetworkNumber(1));
        }),
        ("a candidate is gone", |snapshot, _| {
            snapshot.networks.pop();
        }),
    ];
    for (what, change) in changes {
        let (mut snapshot, mut played, submitted) = story();
        change(&mut snapshot, &mut played);
        let found = compare(&snapshot, &played, &submitted).expect("rules");
        assert!(!found.wrong.is_empty(), "{what}");
    }
}
