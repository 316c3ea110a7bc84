//! The database's suite: what the ledger does in either database program. Each test is a function of a database in
//! the program of the test binary; the tests of a subject are in its module.

use std::collections::BTreeSet;
use std::sync::Arc;

use rookery_common::ids::{ContentHash, JobId, RunName, Seed, UserId};
use rookery_common::network::NetworkSpec;
use rookery_common::openings::OpeningBook;
use rookery_common::params::RunParams;
use rookery_common::protocol::jobs::{Backend, JobRequest};
use rookery_common::protocol::people::Scope;
use rookery_common::protocol::server::Presentation;
use rookery_coordinator::db::{
    Chances, LeaseQuotas, LeaseRequest, NetworkDraft, RunDraft, SharedDatabase, TokenDraft,
    UserDraft,
};
use rookery_coordinator::tokens::Token;

mod accounts;
mod anchors;
mod copies;
mod leases;
mod ledger;
mod legacy;
mod references;
mod rollout;
mod runs;
mod statements;
mod together;

use crate::support::by;
use crate::support::database::TestDatabase;

macro_rules! suite {
    ($($subject:ident: { $($test:ident),* $(,)? })*) => {
        mod each {
            $($(
                #[tokio::test]
                async fn $test() {
                    let database = super::TestDatabase::new().await;
                    super::$subject::$test(database.open().await).await;
                }
            )*)*
        }
    };
}

suite! {
    accounts: {
        users_are_found_by_their_tokens,
        what_the_command_line_gives_is_in_the_operator_log,
        names_are_unique,
        a_user_has_another_name,
        of_a_deleted_user_the_number_stays,
        a_failed_operation_leaves_its_neighbours_alone,
    }
    anchors: {
        anchors_have_an_elo_or_none,
        programs_play_with_workers_that_have_them,
    }
    leases: {
        shares_decide_what_is_handed_out,
        jobs_with_the_solver_are_for_workers_that_know_it,
        many_callers_at_once_get_jobs_of_their_own,
        so_many_leases_are_held_at_once,
        a_match_is_shared_by_those_at_work,
    }
    ledger: {
        a_closed_store_says_so,
    }
    runs: {
        runs_are_created_and_changed,
        the_log_says_what_changed,
        an_archived_run_is_kept_and_a_deleted_one_is_not,
        candidates_wait_for_the_gate,
        only_so_many_candidates_wait,
    }
    rollout: {
        a_large_fleet_gets_a_new_best_gradually,
        a_small_fleet_gets_a_new_best_at_once,
        matches_name_a_new_best_at_once,
        a_demoted_best_stops_at_once,
        a_new_best_begins_with_puzzles_whichever_worker_gets_it_first,
    }
    together: {
        chunks_at_once_count_once_each,
        a_refused_chunk_takes_no_other_with_it,
        a_late_game_breaks_no_batch,
        a_quota_holds_for_those_who_ask_at_once,
        newcomers_get_small_jobs_whoever_asks_with_them,
    }
}

fn name(text: &str) -> RunName {
    text.parse().unwrap()
}

fn user_draft(name: &str, token: &Token) -> UserDraft {
    let hash = token.hash();
    let token = TokenDraft {
        hash,
        scopes: vec![Scope::Contribute],
        machine: "m".to_owned(),
    };
    UserDraft {
        name: name.to_owned(),
        token,
        block: None,
    }
}

async fn user(db: &SharedDatabase, name: &str) -> UserId {
    let token = Token::generate().unwrap();
    db.create_user(user_draft(name, &token), by(name))
        .await
        .unwrap()
}

fn run_draft(text: &str, params: RunParams) -> RunDraft {
    RunDraft {
        name: name(text),
        description: "d".to_owned(),
        presentation: Presentation::default(),
        params,
    }
}

async fn run(db: &SharedDatabase, text: &str, params: RunParams) {
    let created = db.create_run(run_draft(text, params), by("test")).await;
    created.unwrap();
}

fn network(run: &str, user: UserId, number: u8) -> NetworkDraft {
    NetworkDraft {
        run: name(run),
        hash: ContentHash::of(&[number]),
        bytes: 10,
        spec: NetworkSpec::resnet(1, 8),
        user,
        match_seed: Seed(u64::from(number)),
        anchor: None,
    }
}

fn request(user: UserId, chances: Chances) -> LeaseRequest {
    let request = JobRequest {
        protocol: 2,
        version: "v".to_owned(),
        worker: "w".to_owned(),
        backend: Backend::Uniform,
        run: None,
        concurrent_games: 0,
        evals_per_second: f32::NAN,
        programs: false,
        solver: true,
    };
    LeaseRequest {
        user,
        request,
        refused_by: BTreeSet::new(),
        book: Arc::new(OpeningBook::built_in()),
        chances,
        auditor: rookery_coordinator::trust::verdict::Auditor::Volunteer,
        quotas: LeaseQuotas::default(),
        block: None,
        fleet: 1,
    }
}

fn chances(job: u128, gate: f64) -> Chances {
    Chances {
        job: JobId(uuid::Uuid::from_u128(job)),
        seed: Seed(u64::MAX),
        gate,
        rating: gate,
        puzzle: 0.5,
    }
}
