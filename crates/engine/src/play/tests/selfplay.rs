//! Self-play.

use super::*;

#[test]
fn self_play_games_are_sound_and_no_more_than_planned() {
    let gumbel = RootSearch::Gumbel(GumbelParams {
        considered: 4,
        ..GumbelParams::default()
    });
    for root in [RootSearch::Puct, gumbel] {
        let mut params = quick();
        params.search.root = root.clone();
        params.opening_plies = 3;
        params.full_search_share = 0.5;
        params.fast_visits = 5;
        let (records, progress) = play_with(&self_play(params, 9), 4, 0);
        assert!(records.iter().map(|record| record.index).eq(0..9));
        for record in &records {
            check_record(record, 12, &root);
            assert_eq!(record.start.moves.len(), 3);
            assert_eq!(record.seed, Seed(42).of_game(record.index));
        }
        let plies: usize = records.iter().map(|record| record.plies.len()).sum();
        assert_eq!((progress.finished, progress.positions), (9, plies as u64));
        // A visit is an evaluation or a known end; the opening is evaluated without visits.
        assert!(progress.visits >= progress.evaluations);
        assert!(progress.visits <= plies as u64 * 13 + 9 * 4);
        let fast = records
            .iter()
            .flat_map(|r| &r.plies)
            .filter(|p| p.effort == Effort::Fast);
        assert!(
            (plies / 3..2 * plies / 3).contains(&fast.count()),
            "about half are fast"
        );
    }
}

#[test]
fn games_depend_on_their_seed_only() {
    let job = self_play(quick(), 7);
    let (alone, _) = play_with(&job, 1, 0);
    let (together, _) = play_with(&job, 7, 0);
    assert_eq!(alone, together, "not on how many run");
    let (cached, progress) = play_with(&job, 3, 10_000);
    assert_eq!(alone, cached, "not on the cache");
    assert!(progress.cache_hits > 0);
    let last = Planned {
        index: 5,
        game: GameStart::default(),
    };
    let one = Job {
        work: Work::SelfPlay {
            params: quick(),
            games: vec![last],
        },
        ..job
    };
    assert_eq!(play(&one)[0], alone[5], "not on the other games");
    assert_ne!(alone[0].plies, alone[1].plies, "other seeds, other games");
}

#[test]
fn every_visit_is_an_evaluation_a_hit_or_a_known_end() {
    let mut params = quick();
    params.ply_limit = 10;
    let (_, progress) = play_with(&self_play(params, 3), 3, 10_000);
    assert!(progress.visits >= progress.evaluations + progress.cache_hits);
    assert!(progress.evaluations > 0);
}
