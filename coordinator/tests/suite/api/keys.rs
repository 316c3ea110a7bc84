//! Keys of runs: what is signed, by whom, and what is refused.

use axum::body::Body;
use axum::http::{Request, StatusCode, header};
use axum::response::Response;
use rookery_common::ids::ContentHash;
use rookery_common::protocol::ProblemCode;
use rookery_common::protocol::runs::RunInfo;
use rookery_common::signing::{RunKeyInfo, Signature, SigningKey, successor};
use rookery_coordinator::config::AccessConfig;
use rookery_coordinator::db::LogFilter;
use rookery_coordinator::signing::{KeyFolder, write};

use crate::support::app::{TestApp, body, code, params, run};
use crate::support::by;
use crate::support::networks::network_file;

/// A coordinator whose run has a key; the secret lies in its folder if `own` says so.
async fn site(own: bool) -> (TestApp, SigningKey, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let key = SigningKey::generate().unwrap();
    if own {
        write(&folder.path().join("main.key"), &key).unwrap();
    }
    let doors = AccessConfig {
        keys: KeyFolder::new(folder.path().to_owned()),
        ..AccessConfig::default()
    };
    let app = TestApp::with(doors, params()).await;
    let public = key.public().clone();
    app.app
        .db
        .add_run_key(&run(), public, None, by("test"))
        .await
        .unwrap();
    (app, key, folder)
}

async fn submit(app: &TestApp, file: Vec<u8>, signature: Option<&Signature>) -> Response {
    let mut uri = format!("/api/v1/networks/{}?run=main", ContentHash::of(&file));
    if let Some(Signature(text)) = signature {
        let escape = |byte: u8| format!("%{byte:02x}");
        uri.push_str("&signature=");
        uri.extend(text.bytes().map(escape));
    }
    let request = Request::put(uri)
        .header(header::AUTHORIZATION, format!("Bearer {}", app.trainer))
        .body(Body::from(file))
        .unwrap();
    app.send(request).await
}

#[tokio::test]
async fn a_coordinator_with_the_secret_key_signs_by_itself() {
    let (app, key, _folder) = site(true).await;
    let file = network_file(0);
    assert_eq!(
        submit(&app, file.clone(), None).await.status(),
        StatusCode::CREATED
    );
    let job = app.lease(&app.alice).await;
    assert_eq!(job.run_key.as_ref(), Some(key.public()));
    let signature = job.networks[0].signature.clone().unwrap();
    key.public().verify(&file, &signature).unwrap();
    // The same for anyone, as minisign reads it.
    for name in [
        "best".to_owned(),
        "0".to_owned(),
        ContentHash::of(&file).to_string(),
    ] {
        let path = format!("/networks/{name}/signature");
        let answer = app.look("", &path).await;
        assert_eq!(answer.status(), StatusCode::OK);
        assert_eq!(body(answer).await, signature.0.as_bytes());
    }
    let info: RunInfo = app.get("/runs/main").await;
    assert_eq!(info.key.as_ref(), Some(key.public()));
}

#[tokio::test]
async fn without_the_secret_key_only_signed_networks_come_in() {
    let (app, key, folder) = site(false).await;
    let (file, other) = (network_file(0), SigningKey::generate().unwrap());
    let by = |key: &SigningKey, bytes: &[u8]| key.sign_network(&run(), bytes).unwrap();
    let forged = by(&other, &file);
    let of_another = by(&key, &network_file(1));
    let nonsense = Signature("nonsense".to_owned());
    for bad in [None, Some(&forged), Some(&of_another), Some(&nonsense)] {
        let refused = submit(&app, file.clone(), bad).await;
        assert_eq!(
            code(refused).await,
            ProblemCode::SignatureRefused,
            "{bad:?}"
        );
    }
    // A key that lies there and is another's does not sign either.
    write(&folder.path().join("main.key"), &other).unwrap();
    let refused = submit(&app, file.clone(), None).await;
    assert_eq!(code(refused).await, ProblemCode::SignatureRefused);
    assert_eq!(app.get::<RunInfo>("/runs/main").await.networks, 0);
    let signature = by(&key, &file);
    let taken = submit(&app, file, Some(&signature)).await;
    assert_eq!(taken.status(), StatusCode::CREATED);
    let job = app.lease(&app.alice).await;
    assert_eq!(job.networks[0].signature.as_ref(), Some(&signature));
}

#[tokio::test]
async fn a_run_without_a_key_signs_nothing() {
    let app = TestApp::with_network().await;
    let job = app.lease(&app.alice).await;
    assert_eq!((&job.run_key, &job.networks[0].signature), (&None, &None));
    let answer = app.look("", "/networks/best/signature").await;
    assert_eq!(code(answer).await, ProblemCode::NotFound);
    assert_eq!(app.get::<Vec<RunKeyInfo>>("/runs/main/keys").await, []);
}

#[tokio::test]
async fn the_history_of_keys_leads_from_the_first_to_the_last() {
    let (app, first, _folder) = site(true).await;
    let second = SigningKey::generate().unwrap();
    let db = &app.app.db;
    let public = second.public().clone();
    let run = run();
    let unendorsed = db.add_run_key(&run, public.clone(), None, by("test"));
    assert!(unendorsed.await.is_err());
    let endorsement = first.endorse(&run, &public).unwrap();
    for (key, fine) in [
        (public.clone(), true),
        (public.clone(), false),
        (first.public().clone(), false),
    ] {
        let added = db.add_run_key(&run, key, Some(endorsement.clone()), by("test"));
        assert_eq!(added.await.is_ok(), fine);
    }
    let history: Vec<RunKeyInfo> = app.get("/runs/main/keys").await;
    assert_eq!(history.len(), 2);
    assert_eq!(
        successor(first.public(), &run, &history),
        Ok(public.clone())
    );
    assert_eq!(app.get::<RunInfo>("/runs/main").await.key, Some(public));
    let acts = db.operator_log(LogFilter::newest(10)).await.unwrap();
    assert_eq!(
        acts.iter()
            .filter(|act| act.action == "add-run-key")
            .count(),
        2
    );
}
