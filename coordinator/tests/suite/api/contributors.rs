//! Contributors: their credit, lately and in all, and each alone.

use rookery_common::protocol::ProblemCode;
use rookery_common::protocol::jobs::WorkKind;
use rookery_common::protocol::people::{
    ActiveWorkers, ContributorDetail, ContributorInfo, Credit, Span,
};
use rookery_coordinator::clock::Clock as _;

use crate::support::app::{TestApp, code};
use crate::support::selfplay::{selfplays, started};

#[tokio::test]
async fn contributors_get_credit() {
    let app = started().await;
    let list: Vec<ContributorInfo> = app.get("/contributors?run=main").await;
    assert_eq!(list.len(), 1);
    assert_eq!(
        (list[0].name.as_str(), list[0].games, list[0].positions),
        ("alice", 1, 8)
    );
    assert_eq!(list[0].active_workers, 1);
    app.clock.advance_seconds(601);
    let later: Vec<ContributorInfo> = app.get("/contributors").await;
    assert_eq!(later[0].active_workers, 0);
}

#[tokio::test]
async fn contributors_are_listed_with_the_credit_of_a_span() {
    let app = started().await;
    app.clock.advance_seconds(25 * 3600);
    selfplays(&app, &app.bob, &[2, 3]).await;
    let list = async |query: &str| -> Vec<ContributorInfo> {
        app.get(&format!("/contributors?{query}")).await
    };
    let names = async |query: &str| -> Vec<String> {
        let listed = list(query).await;
        listed.into_iter().map(|person| person.name).collect()
    };
    for query in ["span=24h", "run=main&span=24h"] {
        let today = list(query).await;
        let recent = Credit {
            games: 2,
            positions: 16,
            ..Credit::default()
        };
        assert_eq!(today.len(), 1, "{query}");
        assert_eq!((today[0].name.as_str(), today[0].games), ("bob", 2));
        assert_eq!(today[0].recent, Some(recent));
    }
    assert_eq!(names("span=7d&run=main").await, ["bob", "alice"]);
    let places = async |path: &str| -> Vec<Option<u64>> {
        let person: ContributorDetail = app.get(path).await;
        assert_eq!(person.info.rank, person.credit[3].rank);
        person.credit.iter().map(|given| given.rank).collect()
    };
    assert_eq!(places("/contributors/bob?run=main").await, [Some(1); 4]);
    let alice = [None, Some(2), Some(2), Some(2)];
    assert_eq!(places("/contributors/alice").await, alice);
    assert_eq!(list("span=7d&skip=1").await[0].rank, Some(2));
    assert_eq!(names("span=30d&skip=1").await, ["alice"]);
    assert_eq!(names("limit=1").await, ["bob"]);
    assert_eq!(list("span=all").await[1].recent, None);
    // Days count whole.
    app.clock.advance_seconds(7 * 24 * 3600);
    assert!(names("span=24h").await.is_empty());
    assert_eq!(names("span=7d").await, ["bob"]);
    assert_eq!(names("span=30d").await, ["bob", "alice"]);
    for (quarantined, listed) in [(true, &["alice"][..]), (false, &["bob", "alice"][..])] {
        assert_eq!(app.order("/users/bob", quarantined).await, 204);
        assert_eq!(names("span=30d").await, listed);
        app.assert_consistent().await;
    }
    let odd = app.look("", "/contributors?span=1y");
    assert_eq!(code(odd.await).await, ProblemCode::BadRequest);
}

#[tokio::test]
async fn a_contributor_is_shown_with_spans_days_and_workers() {
    let app = started().await;
    let positions = |person: &ContributorDetail| -> Vec<(Span, u64)> {
        let credit = person.credit.iter();
        credit.map(|of| (of.span, of.credit.positions)).collect()
    };
    let by_day = |person: &ContributorDetail| -> Vec<(String, u64)> {
        let days = person.days.iter();
        days.map(|of| (of.day.clone(), of.credit.positions))
            .collect()
    };
    let day = |app: &TestApp| app.clock.now().strftime("%Y-%m-%d").to_string();
    let joined = day(&app);
    let spans = |given: [u64; 4]| Span::ALL.into_iter().zip(given).collect::<Vec<_>>();
    for path in ["/contributors/Alice?run=main", "/contributors/alice"] {
        let alice: ContributorDetail = app.get(path).await;
        assert_eq!((alice.info.name.as_str(), alice.info.games), ("alice", 1));
        assert_eq!(positions(&alice), spans([8; 4]));
        assert_eq!(by_day(&alice), [(day(&app), 8)]);
        let [worker] = &alice.workers[..] else {
            panic!("one worker")
        };
        assert_eq!(
            (worker.name.as_str(), worker.version.as_str()),
            ("w", "0.1.0")
        );
        assert_eq!(worker.job_kind, Some(WorkKind::SelfPlay));
    }
    app.lease(&app.bob).await;
    let bob: ContributorDetail = app.get("/contributors/bob").await;
    assert_eq!((positions(&bob), bob.workers.len()), (spans([0; 4]), 1));
    let active: ActiveWorkers = app.get("/workers?limit=1").await;
    assert_eq!((active.all, active.last_heard.len()), (2, 1));
    app.clock.advance_seconds(8 * 24 * 3600);
    let alice: ContributorDetail = app.get("/contributors/alice").await;
    assert_eq!(positions(&alice), spans([0, 0, 8, 8]));
    let days = by_day(&alice);
    assert_eq!((&days[0], days.len()), (&(joined, 8), 9));
    assert_eq!(days[8], (day(&app), 0));
    assert!(alice.workers.is_empty());
    assert_eq!(app.get::<ActiveWorkers>("/workers").await.all, 0);
    app.clock.advance_seconds(30 * 24 * 3600);
    let alice: ContributorDetail = app.get("/contributors/alice").await;
    assert_eq!(by_day(&alice).len(), 31);
    assert!(by_day(&alice).iter().all(|(_, positions)| *positions == 0));
    for nobody in ["carol", "a%00b", "alice?run=other"] {
        let path = format!("/contributors/{nobody}");
        let answer = app.look("", &path);
        assert_eq!(code(answer.await).await, ProblemCode::NotFound, "{nobody}");
    }
}
