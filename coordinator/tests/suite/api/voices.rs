//! Whose word counts in audits: not that of somebody in quarantine.

use rookery_common::protocol::jobs::WorkKind;
use rookery_common::protocol::people::Scope;

use crate::support::app::user;
use crate::support::court::{Court, PATIENCE};
use crate::support::games::Found::Other;
use crate::support::noon;

#[tokio::test]
async fn the_word_of_somebody_in_quarantine_counts_for_nothing() {
    let mut court = Court::new().await;
    let (bob, carol) = (court.app.bob.clone(), court.carol.clone());
    court.proven(&[&bob, &carol]).await;
    let (games, _) = court.alice_plays().await;
    court.without_auditor(&[&bob, &carol]).await;
    let first = court.drawn_answers(&games, Other).await;
    let path = format!("/users/{first}");
    assert_eq!(court.app.order(&path, true).await, 204);
    court.drawn_answers(&games, Other).await;
    let alice = court.alice().await;
    assert_eq!((alice.audits_open, alice.audits_failed), (1, 0));
}

#[tokio::test]
async fn those_in_quarantine_do_not_keep_newcomers_from_auditing() {
    let mut court = Court::new().await;
    let [bob, carol, dave] = [&court.app.bob, &court.carol, &court.dave].map(Clone::clone);
    court.proven(&[&bob, &carol, &dave]).await;
    let db = court.app.app.db.clone();
    let auditors = db.tokens("auditor").await.unwrap();
    let revoked = db.revoke_token(auditors[0].id, "test", noon());
    revoked.await.unwrap();
    for name in ["bob", "carol", "dave"] {
        let path = format!("/users/{name}");
        assert_eq!(court.app.order(&path, true).await, 204);
    }
    let erin = user(&court.app.app, "erin", &[Scope::Contribute]).await;
    court.come(&[&erin]).await;
    court.alice_plays().await;
    court.app.clock.advance_seconds(PATIENCE);
    assert_eq!(court.kind(&erin).await, WorkKind::Audit);
}
