//! A store of blobs is one ledger's.

use bytes::Bytes;
use futures_util::future::join_all;
use rookery_coordinator::blobs::{BlobKind, MARK, Marking};
use rookery_coordinator::owner::{self, OwnerError};

use crate::support::app::TestApp;
use crate::support::database::Database;
use crate::support::files::Files;
use crate::support::noon;

#[tokio::test]
async fn the_first_ledger_has_the_store_until_another_one_adopts_it() {
    let databases = (Database::new().await, Database::new().await);
    let (first, second) = (databases.0.open().await, databases.1.open().await);
    let files = Files::new().await;
    let blobs = files.open();
    assert!(!owner::check(&*second, &*blobs).await.unwrap());
    assert_eq!(blobs.mark().await.unwrap(), None, "to look marks nothing");
    // Several coordinators of one ledger may start at once.
    let claims = (0..4).map(|_| owner::claim(&*first, &*blobs));
    for claimed in join_all(claims).await {
        claimed.unwrap();
    }
    assert!(owner::check(&*first, &*blobs).await.unwrap());
    let ids = (
        first.ledger_id().await.unwrap(),
        second.ledger_id().await.unwrap(),
    );
    let refused = owner::claim(&*second, &*blobs).await.unwrap_err();
    assert!(refused.is_refusal());
    let OwnerError::Other { owner, id } = refused else {
        panic!("{refused}");
    };
    assert_eq!((owner, id), ids);
    let adopt = || owner::adopt(&*second, &*blobs, "the store", "test", noon());
    assert!(adopt().await.unwrap());
    assert!(!adopt().await.unwrap(), "it is its own already");
    owner::claim(&*second, &*blobs).await.unwrap();
    assert!(owner::claim(&*first, &*blobs).await.is_err());
    let acts = second.operator_log(None, 10).await.unwrap();
    let acts: Vec<_> = acts
        .iter()
        .map(|act| (&*act.actor, &*act.action, &*act.subject, &*act.detail))
        .collect();
    let before = format!("it was that of ledger {}", ids.0);
    assert_eq!(acts, [("test", "adopt-store", "the store", &*before)]);
}

#[tokio::test]
async fn an_unmarked_store_with_networks_is_given_to_no_ledger_that_names_none_of_them() {
    let app = TestApp::new().await;
    let (store, blobs) = (&*app.app.store, &*app.app.blobs);
    app.submit(0).await;
    let database = Database::new().await;
    let empty = database.open().await;
    let refused = owner::claim(&*empty, blobs).await.unwrap_err();
    assert!(
        matches!(refused, OwnerError::Strange { networks: 1 }),
        "{refused}"
    );
    assert_eq!(blobs.mark().await.unwrap(), None);
    owner::claim(store, blobs).await.unwrap();
    let refused = owner::claim(&*empty, blobs).await.unwrap_err();
    assert!(matches!(refused, OwnerError::Other { .. }), "{refused}");
    assert_eq!(blobs.list(BlobKind::Network).await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_mark_that_says_nothing_is_refused_and_adopted() {
    let database = Database::new().await;
    let ledger = database.open().await;
    let files = Files::new().await;
    let blobs = files.open();
    let text = Bytes::from_static(b"something else\n");
    blobs.set_mark(text, Marking::First).await.unwrap();
    let refused = owner::claim(&*ledger, &*blobs).await.unwrap_err();
    assert!(refused.to_string().contains(MARK), "{refused}");
    assert!(matches!(refused, OwnerError::Unreadable), "{refused}");
    let adopted = owner::adopt(&*ledger, &*blobs, "the store", "test", noon()).await;
    assert!(adopted.unwrap());
    owner::claim(&*ledger, &*blobs).await.unwrap();
}

#[tokio::test]
async fn a_store_that_fails_is_no_store_of_another_ledger() {
    let database = Database::new().await;
    let ledger = database.open().await;
    let files = Files::new().await;
    let blobs = files.open();
    files.break_down();
    let failed = owner::claim(&*ledger, &*blobs).await.unwrap_err();
    assert!(!failed.is_refusal(), "{failed}");
    files.mend();
    owner::claim(&*ledger, &*blobs).await.unwrap();
}
