//! Users and their tokens, and the names that users and runs have.

use rookery_common::protocol::people::Scope;
use rookery_common::protocol::server::Presentation;
use rookery_coordinator::store::{RunDraft, SharedStore, StoreError, TokenDraft, UserDraft};
use rookery_coordinator::tokens::{Token, TokenHash};

use super::{name, run, user, user_draft};
use crate::support::app::params;
use crate::support::noon;

pub(super) async fn users_are_found_by_their_tokens(store: SharedStore) {
    let token = Token::generate().unwrap();
    let id = store
        .create_user(user_draft("Ann", &token), "Ann", noon())
        .await
        .unwrap();
    let found = store.principal(&token.hash()).await.unwrap().unwrap();
    assert_eq!((found.user, found.name.as_str()), (id, "Ann"));
    assert_eq!(found.scopes, [Scope::Contribute]);
    let second = Token::generate().unwrap();
    let scopes = vec![Scope::Train, Scope::Operate];
    let draft = TokenDraft {
        hash: second.hash(),
        scopes: scopes.clone(),
        machine: "n".into(),
    };
    let added = store.add_token("Ann", draft, "Ann", noon());
    added.await.unwrap();
    assert_eq!(
        store
            .principal(&second.hash())
            .await
            .unwrap()
            .unwrap()
            .scopes,
        scopes
    );
    let listed = store.tokens("Ann").await.unwrap();
    assert_eq!(listed.len(), 2);
    store
        .revoke_token(listed[1].id, "test", noon())
        .await
        .unwrap();
    assert!(store.principal(&token.hash()).await.unwrap().is_none());
    assert!(
        store
            .principal(&TokenHash([0; 32]))
            .await
            .unwrap()
            .is_none()
    );
    let listed = store.tokens("Ann").await.unwrap();
    let revoked: Vec<bool> = listed.iter().map(|t| t.revoked_at.is_some()).collect();
    assert_eq!(revoked, [false, true]);
    let unknown = store.revoke_token(999, "test", noon()).await;
    assert!(
        matches!(unknown, Err(StoreError::NotFound(_))),
        "{unknown:?}"
    );
}

pub(super) async fn what_the_command_line_gives_is_in_the_operator_log(store: SharedStore) {
    const ACTOR: &str = "command line";
    let draft = |scopes: &[Scope]| TokenDraft {
        hash: Token::generate().unwrap().hash(),
        scopes: scopes.to_vec(),
        machine: String::new(),
    };
    let user = UserDraft {
        name: "Ann".to_owned(),
        token: draft(&[Scope::Contribute]),
    };
    store.create_user(user, ACTOR, noon()).await.unwrap();
    let wide = draft(&[Scope::Contribute, Scope::Operate]);
    let added = store.add_token("ann", wide, ACTOR, noon());
    added.await.unwrap();
    let plain = store.add_token("Ann", draft(&[Scope::Contribute]), ACTOR, noon());
    plain.await.unwrap();
    let tokens = store.tokens("Ann").await.unwrap();
    let (plain, wide, first) = (tokens[0].id, tokens[1].id, tokens[2].id);
    let rotated = store.rotate_token(plain, draft(&[Scope::Contribute]), ACTOR, noon());
    let last = rotated.await.unwrap();
    let acts = store.operator_log(None, 10).await.unwrap();
    let shown: Vec<_> = acts
        .iter()
        .filter(|act| act.action != "revoke-token")
        .map(|act| (&*act.actor, &*act.action, &*act.subject, act.detail.clone()))
        .collect();
    let expected = [
        (
            "rotate-token",
            format!("token {last} in place of {plain}: contribute"),
        ),
        ("add-token", format!("token {plain}: contribute")),
        ("add-token", format!("token {wide}: contribute operate")),
        ("create-user", format!("token {first}: contribute")),
    ];
    assert_eq!(
        shown,
        expected.map(|(action, detail)| (ACTOR, action, "Ann", detail))
    );
}

pub(super) async fn names_are_unique(store: SharedStore) {
    user(&store, "ann").await;
    let token = Token::generate().unwrap();
    let again = store.create_user(user_draft("ANN", &token), "ANN", noon());
    let again = again.await;
    assert!(matches!(again, Err(StoreError::NameTaken(_))), "{again:?}");
    assert!(store.principal(&token.hash()).await.unwrap().is_none());
    run(&store, "a", params()).await;
    let draft = RunDraft {
        name: name("a"),
        description: String::new(),
        presentation: Presentation::default(),
        params: params(),
    };
    let again = store.create_run(draft, "test", noon()).await;
    assert!(matches!(again, Err(StoreError::NameTaken(_))), "{again:?}");
}

pub(super) async fn a_failed_operation_leaves_its_neighbours_alone(store: SharedStore) {
    user(&store, "taken").await;
    let tokens: Vec<Token> = (0..40).map(|_| Token::generate().unwrap()).collect();
    let creations = tokens.iter().enumerate().map(|(place, token)| {
        let name = if place % 2 == 0 {
            "taken".to_owned()
        } else {
            format!("user{place}")
        };
        let (store, draft) = (store.clone(), user_draft(&name, token));
        tokio::spawn(async move { store.create_user(draft, "test", noon()).await })
    });
    let creations: Vec<_> = creations.collect();
    for (place, creation) in creations.into_iter().enumerate() {
        let created = creation.await.unwrap();
        assert_eq!(created.is_ok(), place % 2 == 1, "{place}: {created:?}");
        let known = store.principal(&tokens[place].hash()).await.unwrap();
        assert_eq!(known.is_some(), place % 2 == 1);
    }
}
