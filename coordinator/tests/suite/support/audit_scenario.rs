//! A coordinator at which contributors play, audit each other and are judged.

use std::sync::atomic::{AtomicU32, Ordering};

use rookery_common::chunk::GameRecord;
use rookery_common::ids::ContentHash;
use rookery_common::protocol::jobs::{Job, WorkKind};
use rookery_common::protocol::people::Scope;
use rookery_common::protocol::runs::RunInfo;
use rookery_common::protocol::trust::{ContributorTrust, HoldPage, HoldRow, TrustInfo};
use rookery_coordinator::clock::Clock as _;
use rookery_coordinator::db::ACTIVE;
use rookery_coordinator::trust::plan::{draw_waiting, plan_waiting};
use rookery_coordinator::trust::rate::PROBATION;

use super::app::{TestApp, user};
use super::by;
use super::games::Found::Same;
use super::games::{Found, audit, chunk, selfplay};

/// Seconds that are more than an audit is kept from volunteers.
pub(crate) const PATIENCE: i64 = 30;

/// Games of a self-play job: enough positions for a whole pass.
pub(crate) const GAMES: u32 = 200;

/// Their positions.
pub(crate) const POSITIONS: u64 = GAMES as u64 * 8;

/// Games of a chunk that is small: once it is trusted, hardly any of a contributor's is audited.
pub(crate) const FEW: u32 = 32;

/// A coordinator with a network, three more contributors and an auditor whom the operator trusts.
pub(crate) struct AuditScenario {
    pub(crate) app: TestApp,
    pub(crate) carol: String,
    pub(crate) dave: String,
    pub(crate) auditor: String,
    salt: AtomicU32,
}

impl AuditScenario {
    pub(crate) async fn new() -> Self {
        let app = TestApp::of_run(1, |run| run.scheduling.selfplay_games = GAMES).await;
        let contribute = &[Scope::Contribute];
        Self {
            carol: user(&app.app, "carol", contribute).await,
            dave: user(&app.app, "dave", contribute).await,
            auditor: user(&app.app, "auditor", &[Scope::Contribute, Scope::Audit]).await,
            app,
            salt: AtomicU32::new(1_000),
        }
    }

    /// Alice plays a job; the games, and the chunk's hash.
    pub(crate) async fn alice_plays(&self) -> (Vec<GameRecord>, ContentHash) {
        self.plays(&self.app.alice).await
    }

    /// Someone plays a self-play job.
    pub(crate) async fn plays(&self, token: &str) -> (Vec<GameRecord>, ContentHash) {
        self.plays_some(token, GAMES).await
    }

    /// Someone plays the first games of a self-play job.
    pub(crate) async fn plays_some(
        &self,
        token: &str,
        games: u32,
    ) -> (Vec<GameRecord>, ContentHash) {
        let job = self.app.lease(token).await;
        assert_eq!(job.work.kind(), WorkKind::SelfPlay);
        let salt = self.salt.fetch_add(1_000, Ordering::Relaxed);
        let games: Vec<_> = (0..games)
            .map(|index| selfplay(&job, index, salt + index))
            .collect();
        let bytes = chunk(&job, &games);
        self.app.accepted(token, &bytes).await;
        plan_waiting(&self.app.app).await.unwrap();
        (games, ContentHash::of(&bytes))
    }

    /// These contributors pass as many audits as a volunteer who audits others must have.
    pub(crate) async fn proven(&self, tokens: &[&str]) {
        for token in tokens {
            for _ in 0..PROBATION {
                let (games, _) = self.plays(token).await;
                self.answer(&self.auditor, &games, Same).await;
            }
        }
    }

    /// A scenario whose contributors have no record yet, and in which the operator has no auditor.
    pub(crate) async fn of_newcomers() -> Self {
        let scenario = Self::new().await;
        scenario.revoke_auditor().await;
        scenario
            .come(&[&scenario.app.bob, &scenario.carol, &scenario.dave])
            .await;
        scenario
    }

    /// The operator takes the auditor's token back.
    pub(crate) async fn revoke_auditor(&self) {
        let db = &self.app.app.db;
        let tokens = db.tokens("auditor").await.unwrap();
        let revoked = db.revoke_token(tokens[0].id, by("test"));
        revoked.await.unwrap();
    }

    /// These contributors are heard of: audits are drawn among those at work.
    pub(crate) async fn come(&self, tokens: &[&str]) {
        for token in tokens {
            let job = self.app.lease(token).await;
            self.app.give_back(token, &job).await;
        }
    }

    /// The operator's auditor has gone, but these contributors are at work.
    pub(crate) async fn without_auditor(&self, tokens: &[&str]) {
        let seconds = ACTIVE.as_secs() + 1;
        self.app.clock.advance_seconds(seconds);
        self.come(tokens).await;
    }

    /// The kind of job that somebody gets.
    pub(crate) async fn kind(&self, token: &str) -> WorkKind {
        self.lease(token).await.work.kind()
    }

    /// Takes a job: if there is an audit that somebody may make, chance draws just this one for it.
    pub(crate) async fn lease(&self, token: &str) -> Job {
        self.draw(token).await;
        self.app.lease(token).await
    }

    /// Audits that wait have their tasks.
    pub(crate) async fn planned(&self) {
        plan_waiting(&self.app.app).await.unwrap();
    }

    /// Draws somebody for the oldest audit that it may make.
    pub(crate) async fn draw(&self, token: &str) {
        let db = &self.app.app.db;
        let user = self.app.holder(token).await.user;
        let now = self.app.clock.now();
        for board in db.draw_boards(now).await.unwrap() {
            let own = board.candidates.iter();
            let own = own.filter(|candidate| candidate.person.user == user);
            for candidate in own {
                let mut audits = board.audits.iter();
                if let Some(audit) = audits.find(|audit| board.may_make(candidate, audit)) {
                    let drawn = vec![(audit.id, user)];
                    return db.enter_draws(drawn, now).await.unwrap();
                }
            }
        }
    }

    /// Draws somebody for the audits that wait, as the coordinator does; the name and the token of whoever is to
    /// make the oldest.
    pub(crate) async fn drawn(&self) -> (&'static str, String) {
        draw_waiting(&self.app.app).await.unwrap();
        let mut ledger = self.app.database.connect().await;
        let name: String = sqlx::query_scalar(
            "SELECT u.name FROM audits a JOIN users u ON u.id = a.drawn_for
             WHERE a.state = 'open' ORDER BY a.id LIMIT 1",
        )
        .fetch_one(&mut ledger)
        .await
        .unwrap();
        let people = [
            ("alice", &self.app.alice),
            ("bob", &self.app.bob),
            ("carol", &self.carol),
            ("dave", &self.dave),
        ];
        let (name, token) = people.into_iter().find(|one| one.0 == name).unwrap();
        (name, token.clone())
    }

    /// Whoever is drawn for the oldest audit answers it; the name.
    pub(crate) async fn drawn_answers(&self, games: &[GameRecord], found: Found) -> &'static str {
        let (name, token) = self.drawn().await;
        let job = self.app.lease(&token).await;
        assert_eq!(job.work.kind(), WorkKind::Audit);
        self.app.accepted(&token, &audit(&job, games, found)).await;
        name
    }

    /// Someone gets an audit and answers it.
    pub(crate) async fn answer(&self, token: &str, games: &[GameRecord], found: Found) -> Job {
        let job = self.lease(token).await;
        assert_eq!(job.work.kind(), WorkKind::Audit);
        self.app.accepted(token, &audit(&job, games, found)).await;
        job
    }

    /// Alice plays, and the operator's auditor answers.
    pub(crate) async fn judged(&self, found: Found) -> ContentHash {
        let (games, hash) = self.alice_plays().await;
        self.answer(&self.auditor, &games, found).await;
        self.app.assert_consistent().await;
        hash
    }

    pub(crate) async fn alice(&self) -> TrustInfo {
        self.app.app.db.trust("alice").await.unwrap()
    }

    /// Chunks that were held and let go, but not those that only wait for their audits.
    pub(crate) async fn holds(&self) -> Vec<(ContentHash, bool)> {
        let rows = self.hold_rows().await.into_iter();
        rows.filter(|hold| !hold.reason.contains("training"))
            .map(|hold| (hold.chunk, hold.held))
            .collect()
    }

    /// Chunks that a trainer leaves out, in the order in which it hears of that.
    pub(crate) async fn left_out(&self) -> Vec<ContentHash> {
        let mut left_out = Vec::new();
        for hold in self.hold_rows().await {
            left_out.retain(|chunk| *chunk != hold.chunk);
            if hold.held {
                left_out.push(hold.chunk);
            }
        }
        left_out
    }

    async fn hold_rows(&self) -> Vec<HoldRow> {
        let token = &self.app.trainer;
        let page: HoldPage = self.app.get_as(token, "/holds?run=main").await;
        page.holds
    }

    pub(crate) async fn training_positions(&self) -> u64 {
        self.app
            .get::<RunInfo>("/runs/main")
            .await
            .training_positions
    }

    /// What operators are told of everybody.
    pub(crate) async fn people(&self) -> Vec<ContributorTrust> {
        let operator = &self.app.operator;
        self.app.get_as(operator, "/trust/contributors").await
    }
}
