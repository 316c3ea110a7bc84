//! A fleet at work: events in the order of time.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::net::{IpAddr, Ipv4Addr};

use axum::body::Body;
use axum::http::{Method, Request, StatusCode, header};
use axum::response::Response;
use rand::seq::SliceRandom as _;
use rand::{Rng as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use rookery_common::chunk::GameRecord;
use rookery_common::ids::{ContentHash, Seed};
use rookery_common::protocol::ProblemCode;
use rookery_common::protocol::jobs::{Job, Work};
use rookery_common::protocol::people::{NewToken, Scope};
use rookery_common::protocol::trust::TrustLevel;
use rookery_coordinator::clock::Clock as _;
use rookery_coordinator::config::Registration;
use rookery_coordinator::limits::address::Peer;
use rookery_coordinator::trust::plan::{draw_waiting, plan_waiting, release_audited, watch_drift};
use serde_json::json;
use sqlx::Connection as _;

use super::account::{Account, DAY, Role};
use super::games::{Line, PLIES};
use super::{FleetParams, Root, Strategy};
use crate::support::app::{TestApp, code, params, parse, user};
use crate::support::games::Found::{Other, Same};
use crate::support::games::{audit, chunk};

/// Seconds that a self-play job takes.
const JOB: std::ops::Range<i64> = 420..540;
/// Seconds that an audit takes.
const AUDIT: i64 = 15;
/// Seconds between two looks for audits to plan and to draw somebody for.
const TICK: i64 = 20;
/// Ticks between two looks at drift.
const DRIFT: i64 = 30;
/// Seconds between two registrations: nobody's circle by the time.
const APART: i64 = 660;

/// A self-play chunk, and whether it is true.
#[derive(Debug)]
pub(super) struct Played {
    pub(super) author: usize,
    pub(super) at: i64,
    pub(super) hash: ContentHash,
    pub(super) is_false: bool,
    seed: Seed,
    salt: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// Audits are planned and drawn.
    Tick,
    /// An account ends its job and asks for another.
    Account(usize),
    /// A Sybil comes back under a new name.
    Return,
}

/// A coordinator and those who work for it.
pub(super) struct Fleet {
    pub(super) params: FleetParams,
    pub(super) app: TestApp,
    pub(super) accounts: Vec<Account>,
    pub(super) chunks: Vec<Played>,
    /// Audits answered, and searches made for them.
    pub(super) audits: u64,
    pub(super) searched: u64,
    /// Answers of Sybils that honest chunks are false, and that false ones are honest.
    pub(super) accusations: u64,
    pub(super) acquittals: u64,
    /// Seconds since 1970 at which work begins.
    pub(super) start: i64,
    events: BinaryHeap<Reverse<(i64, Event)>>,
    /// Which game of which chunk has a seed.
    games: HashMap<Seed, (usize, u32)>,
    line: Line,
    rng: ChaCha8Rng,
}

impl Fleet {
    pub(super) async fn new(fleet: FleetParams) -> Self {
        let mut run = params();
        run.scheduling.selfplay_games = fleet.games;
        run.selfplay.ply_limit = PLIES;
        run.scheduling.lease_seconds = 1_200;
        let app = TestApp::with(Registration::Open, run.clone()).await;
        app.submit(0).await;
        let mut rng = ChaCha8Rng::seed_from_u64(fleet.seed);
        let mut fleet = Self {
            line: Line::new(run.selfplay.search.visits, &mut rng),
            rng,
            params: fleet,
            app,
            accounts: Vec::new(),
            chunks: Vec::new(),
            audits: 0,
            searched: 0,
            accusations: 0,
            acquittals: 0,
            start: 0,
            events: BinaryHeap::new(),
            games: HashMap::new(),
        };
        fleet.register_all().await;
        fleet
    }

    fn now(&self) -> i64 {
        self.app.clock.now().as_second()
    }

    async fn register_all(&mut self) {
        let sybils = (self.params.accounts as f64 * self.params.sybils).round() as usize;
        let mut roles = vec![Role::Honest; self.params.accounts - sybils];
        roles.extend(vec![Role::Sybil; sybils]);
        if self.params.strategy != Strategy::AtOnce {
            roles.shuffle(&mut self.rng);
        }
        for role in roles {
            if !self.is_together(role) {
                self.app.clock.advance_seconds(APART);
            }
            self.register(role).await;
        }
        if self.params.record > 0 {
            self.give_records().await;
        }
        if self.params.root == Root::Auditor {
            let scopes = [Scope::Contribute, Scope::Audit];
            let token = user(&self.app.app, "auditor", &scopes).await;
            let auditor = Account::new("auditor".to_owned(), token, None, Role::Auditor);
            self.accounts.push(auditor);
        }
        self.start = self.now();
        for place in 0..self.accounts.len() {
            self.begin(place);
        }
        self.events.push(Reverse((self.start, Event::Tick)));
    }

    /// Lets an account begin within its first working day.
    fn begin(&mut self, place: usize) {
        let now = self.now();
        let away = DAY - self.params.hours_a_day * 3_600;
        // Who works around the clock begins within ten minutes, the others whenever their day does.
        let later = self.rng.random_range(0..away.max(600));
        self.accounts[place].begins = now + later - away;
        let at = now + self.accounts[place].rest(now, self.params.hours_a_day);
        let at = at + self.rng.random_range(0..60);
        self.events.push(Reverse((at, Event::Account(place))));
    }

    /// Whether accounts of a role register at once, from one block of addresses.
    fn is_together(&self, role: Role) -> bool {
        role == Role::Sybil && self.params.strategy == Strategy::AtOnce
    }

    async fn register(&mut self, role: Role) {
        let number = self.accounts.len();
        let address = if self.is_together(role) {
            Ipv4Addr::new(198, 51, 100, number as u8)
        } else {
            Ipv4Addr::new(
                80 + (number >> 16) as u8,
                (number >> 8) as u8,
                number as u8,
                7,
            )
        };
        let address = Some(IpAddr::V4(address));
        let name = format!("contributor-{number}");
        let account = Account::new(name.clone(), String::new(), address, role);
        let body = json!({"name": name}).to_string();
        let answer = self.send(&account, Method::POST, "/users", body).await;
        let token: NewToken = parse(StatusCode::CREATED, answer).await;
        self.accounts.push(Account {
            token: token.token,
            ..account
        });
    }

    /// Everybody has been at work for a long time.
    async fn give_records(&self) {
        let vouched = match self.params.root {
            Root::Auditor | Root::Volunteers => self.params.record,
            Root::Nobody => 0,
        };
        let mut ledger = self.app.database.connect().await;
        sqlx::query(
            "INSERT INTO track_records (user_id, passed, part, failed, vouched)
             SELECT id, $1, 0, 0, $2 FROM users WHERE name LIKE 'contributor-%'",
        )
        .bind(i64::from(self.params.record))
        .bind(i64::from(vouched))
        .execute(&mut ledger)
        .await
        .unwrap();
        ledger.close().await.unwrap();
    }

    async fn send(
        &self,
        account: &Account,
        method: Method,
        path: &str,
        body: impl Into<Body>,
    ) -> Response {
        let mut request = Request::builder()
            .method(method)
            .uri(format!("/api/v1{path}"))
            .header(header::AUTHORIZATION, format!("Bearer {}", account.token))
            .header(header::CONTENT_TYPE, "application/json");
        if let Some(address) = account.address {
            request = request.extension(Peer(address));
        }
        self.app.send(request.body(body.into()).unwrap()).await
    }

    /// Lets the time pass.
    pub(super) async fn run(&mut self) {
        let end = self.start + self.params.hours * 3_600;
        while let Some(Reverse((at, event))) = self.events.pop() {
            if at > end {
                break;
            }
            self.app.clock.advance_seconds((at - self.now()).max(0));
            match event {
                Event::Tick => self.tick(at).await,
                Event::Account(place) => self.turn(place).await,
                Event::Return => {
                    self.register(Role::Sybil).await;
                    self.begin(self.accounts.len() - 1);
                }
            }
        }
    }

    async fn tick(&mut self, at: i64) {
        plan_waiting(&self.app.app).await.unwrap();
        draw_waiting(&self.app.app).await.unwrap();
        release_audited(&self.app.app).await.unwrap();
        if ((at - self.start) / TICK) % DRIFT == 0 {
            watch_drift(&self.app.app).await.unwrap();
        }
        self.events.push(Reverse((at + TICK, Event::Tick)));
    }

    /// An account ends what it is at, and begins something else.
    async fn turn(&mut self, place: usize) {
        if let Some(job) = self.accounts[place].job.take() {
            match &job.work {
                Work::Audit { .. } => self.answer(place, &job).await,
                _ => self.play(place, &job).await,
            }
        }
        let now = self.now();
        let rest = self.accounts[place].rest(now, self.params.hours_a_day);
        if rest > 0 {
            let next = Reverse((now + rest, Event::Account(place)));
            self.events.push(next);
            return;
        }
        let body = json!({
            "protocol": 2, "version": "0.1.0", "worker": "w", "backend": "uniform",
        });
        let account = &self.accounts[place];
        let answer = self.send(account, Method::POST, "/jobs", body.to_string());
        let job: Job = parse(StatusCode::OK, answer.await).await;
        if account.role == Role::Sybil && !job.notices.is_empty() && self.is_found(place).await {
            if self.params.strategy == Strategy::Returning {
                self.events.push(Reverse((now + 3_600, Event::Return)));
            }
            return;
        }
        let takes = match &job.work {
            Work::Audit { .. } => AUDIT,
            _ => self.rng.random_range(JOB),
        };
        self.accounts[place].job = Some(job);
        self.events
            .push(Reverse((now + takes, Event::Account(place))));
    }

    async fn is_found(&self, place: usize) -> bool {
        let name = &self.accounts[place].name;
        let trust = self.app.app.db.trust(name).await.unwrap();
        trust.level == TrustLevel::Quarantined
    }

    /// Uploads a chunk, true or false.
    async fn play(&mut self, place: usize, job: &Job) {
        let is_false = self.is_about_to_lie(place).await;
        let played = Played {
            author: place,
            at: self.now(),
            hash: ContentHash::of(&[]),
            is_false,
            seed: job.seed,
            salt: self.chunks.len() as u32 * self.params.games,
        };
        let games = (0..self.params.games).map(|index| self.game(&played, index));
        let games: Vec<_> = games.collect();
        let bytes = chunk(job, &games);
        let hash = ContentHash::of(&bytes);
        let account = &self.accounts[place];
        let path = format!("/chunks/{hash}");
        let answer = self.send(account, Method::PUT, &path, bytes).await;
        assert_eq!(answer.status(), StatusCode::OK);
        if is_false {
            self.accounts[place].lied_at.get_or_insert(played.at);
        }
        for (index, game) in (0..).zip(&games) {
            self.games.insert(game.seed, (self.chunks.len(), index));
        }
        self.chunks.push(Played { hash, ..played });
    }

    /// A game of a chunk, made again.
    fn game(&self, chunk: &Played, index: u32) -> GameRecord {
        self.line.game(chunk.seed, index, chunk.salt + index)
    }

    async fn is_about_to_lie(&mut self, place: usize) -> bool {
        if self.accounts[place].role != Role::Sybil {
            return false;
        }
        if !self.accounts[place].lies {
            let name = &self.accounts[place].name;
            let trust = self.app.app.db.trust(name).await.unwrap();
            self.accounts[place].lies = self.params.strategy != Strategy::Patient
                || trust.audits_passed >= self.params.patience;
        }
        self.accounts[place].lies && self.rng.random_range(0..self.params.lie_every) == 0
    }

    /// Answers an audit: honest accounts truly, Sybils for each other and against the rest.
    async fn answer(&mut self, place: usize, job: &Job) {
        let Work::Audit { tasks, .. } = &job.work else {
            return;
        };
        let chunk = &self.chunks[self.games[&tasks[0].seed].0];
        let games: Vec<_> = tasks
            .iter()
            .map(|task| self.game(chunk, self.games[&task.seed].1))
            .collect();
        let truth = if chunk.is_false { Other } else { Same };
        let own = self.accounts[chunk.author].role == Role::Sybil;
        let found = match self.accounts[place].role {
            Role::Sybil if own => Same,
            Role::Sybil if self.params.accuse => Other,
            Role::Honest | Role::Auditor | Role::Sybil => truth,
        };
        let bytes = audit(job, &games, found);
        let path = format!("/chunks/{}", ContentHash::of(&bytes));
        let answer = self.send(&self.accounts[place], Method::PUT, &path, bytes);
        let answer = answer.await;
        if answer.status() != StatusCode::OK {
            // The operator's auditor has taken it over, or its author is in quarantine.
            assert_eq!(code(answer).await, ProblemCode::LeaseEnded);
            return;
        }
        self.audits += 1;
        self.searched += tasks
            .iter()
            .map(|task| task.moves.len() as u64)
            .sum::<u64>();
        self.accusations += u64::from(found == Other && truth == Same);
        self.acquittals += u64::from(found == Same && truth == Other);
    }
}
