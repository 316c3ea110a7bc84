//! Users and their tokens, and the names that users and runs have.

use rookery_common::protocol::people::Scope;
use rookery_coordinator::db::{
    DbError, LogFilter, SharedDatabase, Standing, TokenDraft, UserChange, UserDraft,
};
use rookery_coordinator::tokens::{Token, TokenHash};

use super::{run, run_draft, user, user_draft};
use crate::support::app::params;
use crate::support::by;

pub(super) async fn users_are_found_by_their_tokens(db: SharedDatabase) {
    let token = Token::generate().unwrap();
    let id = db
        .create_user(user_draft("Ann", &token), by("Ann"))
        .await
        .unwrap();
    let found = db.principal(&token.hash()).await.unwrap().unwrap();
    assert_eq!((found.user, found.name.as_str()), (id, "Ann"));
    assert_eq!(found.scopes, [Scope::Contribute]);
    let second = Token::generate().unwrap();
    let scopes = vec![Scope::Train, Scope::Operate];
    let draft = TokenDraft {
        hash: second.hash(),
        scopes: scopes.clone(),
        machine: "n".into(),
    };
    let added = db.add_token("Ann", draft, by("Ann"));
    added.await.unwrap();
    assert_eq!(
        db.principal(&second.hash()).await.unwrap().unwrap().scopes,
        scopes
    );
    let listed = db.tokens("Ann").await.unwrap();
    assert_eq!(listed.len(), 2);
    db.revoke_token(listed[1].id, by("test")).await.unwrap();
    assert!(db.principal(&token.hash()).await.unwrap().is_none());
    assert!(db.principal(&TokenHash([0; 32])).await.unwrap().is_none());
    let listed = db.tokens("Ann").await.unwrap();
    let revoked: Vec<bool> = listed.iter().map(|t| t.revoked_at.is_some()).collect();
    assert_eq!(revoked, [false, true]);
    let unknown = db.revoke_token(999, by("test")).await;
    assert!(matches!(unknown, Err(DbError::NotFound(_))), "{unknown:?}");
}

pub(super) async fn what_the_command_line_gives_is_in_the_operator_log(db: SharedDatabase) {
    const ACTOR: &str = "command line";
    let draft = |scopes: &[Scope]| TokenDraft {
        hash: Token::generate().unwrap().hash(),
        scopes: scopes.to_vec(),
        machine: String::new(),
    };
    let user = UserDraft {
        name: "Ann".to_owned(),
        token: draft(&[Scope::Contribute]),
        block: None,
    };
    db.create_user(user, by(ACTOR)).await.unwrap();
    let wide = draft(&[Scope::Contribute, Scope::Operate]);
    let added = db.add_token("ann", wide, by(ACTOR));
    added.await.unwrap();
    let plain = db.add_token("Ann", draft(&[Scope::Contribute]), by(ACTOR));
    plain.await.unwrap();
    let tokens = db.tokens("Ann").await.unwrap();
    let (plain, wide, first) = (tokens[0].id, tokens[1].id, tokens[2].id);
    let rotated = db.rotate_token(plain, draft(&[Scope::Contribute]), by(ACTOR));
    let last = rotated.await.unwrap();
    let acts = db.operator_log(LogFilter::newest(10)).await.unwrap();
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

pub(super) async fn names_are_unique(db: SharedDatabase) {
    user(&db, "ann").await;
    let token = Token::generate().unwrap();
    let again = db.create_user(user_draft("ANN", &token), by("ANN"));
    let again = again.await;
    assert!(matches!(again, Err(DbError::NameTaken(_))), "{again:?}");
    assert!(db.principal(&token.hash()).await.unwrap().is_none());
    run(&db, "a", params()).await;
    let again = db.create_run(run_draft("a", params()), by("test")).await;
    assert!(matches!(again, Err(DbError::NameTaken(_))), "{again:?}");
}

pub(super) async fn a_failed_operation_leaves_its_neighbours_alone(db: SharedDatabase) {
    user(&db, "taken").await;
    let tokens: Vec<Token> = (0..40).map(|_| Token::generate().unwrap()).collect();
    let creations = tokens.iter().enumerate().map(|(place, token)| {
        let name = if place % 2 == 0 {
            "taken".to_owned()
        } else {
            format!("user{place}")
        };
        let (db, draft) = (db.clone(), user_draft(&name, token));
        tokio::spawn(async move { db.create_user(draft, by("test")).await })
    });
    let creations: Vec<_> = creations.collect();
    for (place, creation) in creations.into_iter().enumerate() {
        let created = creation.await.unwrap();
        assert_eq!(created.is_ok(), place % 2 == 1, "{place}: {created:?}");
        let known = db.principal(&tokens[place].hash()).await.unwrap();
        assert_eq!(known.is_some(), place % 2 == 1);
    }
}

pub(super) async fn a_user_has_another_name(db: SharedDatabase) {
    let token = Token::generate().unwrap();
    let id = db.create_user(user_draft("Ann", &token), by("Ann"));
    let id = id.await.unwrap();
    user(&db, "bob").await;
    let rename = async |to: &str| {
        db.change_user("ann", UserChange::name(to), by("command line"))
            .await
    };
    let taken = rename("BOB").await;
    assert!(matches!(taken, Err(DbError::NameTaken(_))), "{taken:?}");
    let alike = rename("b0b").await;
    assert!(matches!(alike, Err(DbError::NameAlike { .. })), "{alike:?}");
    rename("ANN").await.unwrap();
    rename("anna").await.unwrap();
    let found = db.principal(&token.hash()).await.unwrap().unwrap();
    assert_eq!((found.user, &*found.name), (id, "anna"));
    let gone = rename("x").await;
    assert!(matches!(gone, Err(DbError::NotFound(_))), "{gone:?}");
    user(&db, "ann").await;
    let log = db.operator_log(LogFilter::newest(1)).await.unwrap();
    assert_eq!((&*log[0].action, &*log[0].subject), ("rename-user", "ANN"));
}

pub(super) async fn of_a_deleted_user_the_number_stays(db: SharedDatabase) {
    let token = Token::generate().unwrap();
    let scopes = vec![Scope::Contribute, Scope::Operate];
    let draft = TokenDraft {
        hash: token.hash(),
        scopes,
        machine: "anns-laptop".to_owned(),
    };
    let draft = UserDraft {
        name: "Ann".to_owned(),
        token: draft,
        block: None,
    };
    let id = db.create_user(draft, by("command line")).await.unwrap();
    user(&db, "bob").await;
    let block = async |name: &str| {
        let blocked = db.change_user(name, UserChange::standing(Standing::Blocked), by("ann"));
        blocked.await.unwrap();
    };
    block("bob").await;
    db.change_user("ann", UserChange::name("anna"), by("command line"))
        .await
        .unwrap();
    // Another takes the name that is free now, and keeps what is in the log of that one.
    user(&db, "ann").await;
    block("ann").await;
    let own = db.delete_user("anna", by("anna")).await;
    assert!(matches!(own, Err(DbError::Conflict(_))), "{own:?}");
    assert_eq!(db.delete_user("anna", by("bob")).await.unwrap(), id);
    assert!(db.principal(&token.hash()).await.unwrap().is_none());
    let again = db.delete_user("anna", by("bob")).await;
    assert!(matches!(again, Err(DbError::NotFound(_))), "{again:?}");
    let number = format!("deleted-{id}");
    let tokens = db.tokens(&number).await.unwrap();
    assert!(tokens[0].revoked_at.is_some() && tokens[0].machine.is_empty());
    let log = db.operator_log(LogFilter::newest(20)).await.unwrap();
    let shown: Vec<_> = log
        .iter()
        .map(|act| (&*act.actor, &*act.action, &*act.subject))
        .collect();
    let expected = [
        ("bob", "delete-user", &*number),
        ("ann", "block-user", "ann"),
        ("command line", "rename-user", &*number),
        (&*number, "block-user", "bob"),
        ("command line", "create-user", &*number),
    ];
    assert_eq!(shown, expected);
    let text = format!("{log:?}").to_lowercase();
    assert!(!text.contains("anna") && !text.contains("laptop"), "{text}");
    user(&db, "anna").await;
}
