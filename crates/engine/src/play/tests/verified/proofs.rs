//! Proofs of the solver, as they are recorded and made up.

use super::*;

/// The solver on or off in what was leased.
fn with_solver(leased: &jobs::Work, solver: bool) -> jobs::Work {
    let mut leased = leased.clone();
    if let jobs::Work::SelfPlay { params, .. } = &mut leased {
        params.search.solver = solver;
    }
    leased
}

#[test]
fn a_proven_search_is_accepted_as_it_is_recorded_and_in_no_other_form() {
    let mut seen = 0;
    for (leased, games) in ways() {
        for game in &games {
            let Some(ply) = game.plies.iter().position(PlyRecord::is_decided) else {
                continue;
            };
            seen += 1;
            let at = Some(ply as u32);
            let few = [ChunkErrorCode::TooFewVisits, ChunkErrorCode::WrongSchedule];
            let refused_without = refusal(std::slice::from_ref(game), &with_solver(&leased, false));
            assert!(refused_without.is_some_and(|(code, _)| few.contains(&code)));
            let refused = |change: &dyn Fn(&mut PlyRecord)| {
                let mut changed = game.clone();
                change(&mut changed.plies[ply]);
                refusal(&[changed], &leased)
            };
            for change in [
                |ply: &mut PlyRecord| ply.root_q = 0.9,
                |ply: &mut PlyRecord| ply.root_q = -ply.root_q,
                |ply: &mut PlyRecord| ply.best_q = -ply.best_q,
            ] {
                let (code, found) = refused(&change).unwrap();
                assert!(few.contains(&code) && found == at, "{code:?}");
            }
            if game.plies[ply].target.is_some() {
                let learned_otherwise = refused(&|ply| {
                    let target = ply.target.as_mut().unwrap();
                    target.rotate_left(1);
                });
                if game.plies[ply].visits.len() > 1 {
                    assert_eq!(learned_otherwise, Some((ChunkErrorCode::BadTarget, at)));
                }
            }
        }
    }
    assert!(seen > 5, "{seen} games had a proven search");
}

/// Whoever makes proofs up to save the search is found out at once, but where few moves are left to look at.
#[test]
fn most_proofs_that_are_made_up_are_refused() {
    let (mut refused, mut left_to_audits) = (0, 0);
    for (leased, games) in ways() {
        let rules = GameRules::of(&leased);
        if !rules.search.solver || rules.reuse == Reuse::Keep {
            continue;
        }
        let units = match rules.search.root {
            RootSearch::Puct => 1,
            RootSearch::Gumbel(_) => TARGET_UNITS,
        };
        // The third one begins with all pieces.
        let game = &games[2];
        for (ply, value) in (0..game.plies.len()).flat_map(|ply| [(ply, 1.0), (ply, -1.0)]) {
            let mut changed = game.clone();
            let record = &mut changed.plies[ply];
            let history = game.start.history().unwrap();
            let played = &game.plies[..ply];
            let history = played.iter().fold(history, |mut history, record| {
                history.push(record.played);
                history
            });
            let legal = canonical_moves(history.position());
            record.visits = legal
                .iter()
                .map(|m| u32::from(*m == record.played))
                .collect();
            if let Some(target) = &mut record.target {
                *target = record.visits.iter().map(|n| *n as u16 * units).collect();
            }
            (record.root_q, record.root_draw, record.best_q) = (value, 0.0, value);
            match refusal(&[changed], &leased) {
                Some((ChunkErrorCode::FalseProof, _)) => refused += 1,
                _ if game.plies[ply].is_decided() => {}
                _ => left_to_audits += 1,
            }
        }
    }
    assert!(
        left_to_audits * 50 < refused,
        "{left_to_audits} of {refused}"
    );
}
