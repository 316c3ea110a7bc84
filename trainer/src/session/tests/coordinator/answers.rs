//! What the coordinator answers.

use rookery_client::testing::{Answer, Request};
use rookery_common::ids::{ContentHash, NetworkNumber};
use rookery_common::network::{NetworkSpec, verify};
use rookery_common::params::RunParams;
use rookery_common::protocol::ProblemCode;
use rookery_common::protocol::jobs::{ChunkPage, ChunkRow};
use rookery_common::protocol::networks::{
    ExportFormat, ExportReceipt, NetworkExport, NetworkInfo, NetworkReceipt, NetworkStatus,
};
use rookery_common::protocol::runs::{MetricReport, RunInfo, RunStatus, VersionPolicy};
use rookery_common::protocol::trust::{HoldPage, HoldRow};

use super::State;

/// Rows of a page.
const PAGE: usize = 3;

impl State {
    pub(super) fn answer(&mut self, request: &Request) -> Answer {
        self.requests += 1;
        if self.away && !self.requests.is_multiple_of(3) {
            return Answer::new(503, "bad gateway");
        }
        let call = request.call();
        let (method, address) = call.split_once(' ').unwrap();
        let parts: Vec<&str> = address.split('?').next().unwrap().split('/').collect();
        match (method, parts.as_slice()) {
            ("GET", ["runs", "main"]) => Answer::json(&self.run()),
            ("GET", ["chunks"]) => Answer::json(&self.page(address)),
            ("GET", ["holds"]) => Answer::json(&self.hold_page(address)),
            ("GET", ["chunks", hash]) => {
                self.chunk_requests += 1;
                self.chunk(hash)
            }
            ("PUT", ["networks", hash]) => self.submit(hash, &request.body),
            ("PUT", ["networks", hash, "file"]) => self.add_export(hash, address, &request.body),
            ("GET", ["networks", name]) => {
                if self.networks.len() > 1 && std::mem::take(&mut self.lose_candidate) {
                    self.networks.pop();
                }
                self.find(name, |(info, _)| Answer::json(info))
            }
            ("GET", ["networks", _, "file"]) if self.network_files_missing => {
                Answer::problem(ProblemCode::Internal)
            }
            ("GET", ["networks", name, "file"]) => {
                self.find(name, |(_, file)| Answer::new(200, file.as_slice()))
            }
            ("POST", ["runs", "main", "metrics"]) => self.report(&request.body),
            _ => Answer::problem(ProblemCode::NotFound),
        }
    }

    fn run(&self) -> RunInfo {
        let params = RunParams {
            training: self.params.clone(),
            ..RunParams::default()
        };
        RunInfo {
            name: "main".parse().unwrap(),
            title: None,
            description: String::new(),
            contact: None,
            links: Vec::new(),
            status: RunStatus::Open,
            params,
            key: None,
            versions: VersionPolicy::default(),
            best: self.best().map(|(info, _)| info.number),
            networks: self.networks.len() as u32,
            games: 0,
            training_positions: 0,
            positions: 0,
            chunks: 0,
            chunk_bytes: 0,
            last_report: None,
            created_at: String::new(),
            archived_at: None,
        }
    }

    fn best(&self) -> Option<&(NetworkInfo, Vec<u8>)> {
        use NetworkStatus::{Initial, Promoted};
        self.networks
            .iter()
            .rev()
            .find(|(info, _)| matches!(info.status, Initial | Promoted))
    }

    fn hold_page(&self, address: &str) -> HoldPage {
        let after = after(address);
        let mut rows = self.holds.iter().filter(|row| row.sequence > after);
        let holds: Vec<HoldRow> = rows.by_ref().take(PAGE).cloned().collect();
        HoldPage {
            next: holds.last().map_or(after, |row| row.sequence),
            more: rows.next().is_some(),
            holds,
        }
    }

    fn page(&self, address: &str) -> ChunkPage {
        let after = after(address);
        let mut rows = self
            .chunks
            .iter()
            .map(|(row, _)| row)
            .filter(|row| row.sequence > after);
        let chunks: Vec<ChunkRow> = rows.by_ref().take(PAGE).cloned().collect();
        let next = chunks.last().map_or(after, |row| row.sequence);
        ChunkPage {
            chunks,
            next,
            more: rows.next().is_some(),
        }
    }

    fn chunk(&self, hash: &str) -> Answer {
        let found = self
            .chunks
            .iter()
            .find(|(row, _)| row.hash.to_string() == hash);
        let found = found.filter(|(_, bytes)| !bytes.is_empty());
        let missing = || Answer::problem(ProblemCode::NotFound);
        found.map_or_else(missing, |(_, bytes)| Answer::new(200, bytes.as_slice()))
    }

    fn find(&self, name: &str, answer: impl Fn(&(NetworkInfo, Vec<u8>)) -> Answer) -> Answer {
        let found = match name {
            "best" => self.best(),
            name => self
                .networks
                .iter()
                .find(|(info, _)| info.hash.to_string() == name || info.number.to_string() == name),
        };
        found.map_or_else(|| Answer::problem(ProblemCode::NotFound), answer)
    }

    fn submit(&mut self, hash: &str, file: &[u8]) -> Answer {
        if !self.networks.is_empty() && std::mem::take(&mut self.stop_at_candidate) {
            self.shutdown.request();
            return Answer::problem(ProblemCode::Unavailable);
        }
        if self.refusing && !self.networks.is_empty() {
            return Answer::problem(ProblemCode::Conflict);
        }
        if self.too_many > 0 && !self.networks.is_empty() {
            self.too_many -= 1;
            return Answer::problem(ProblemCode::TooManyCandidates);
        }
        let verified = verify(file).unwrap();
        assert_eq!(verified.hash.to_string(), hash);
        let known = self
            .networks
            .iter()
            .find(|(info, _)| info.hash == verified.hash);
        let duplicate = known.is_some();
        let info = match known {
            Some((info, _)) => info.clone(),
            None => self.add_network(verified.hash, verified.spec, file),
        };
        Answer::json(&NetworkReceipt {
            hash: info.hash,
            number: info.number,
            status: info.status,
            gate: None,
            duplicate,
        })
    }

    fn add_export(&mut self, network: &str, address: &str, file: &[u8]) -> Answer {
        if self.refused_exports > 0 {
            self.refused_exports -= 1;
            return Answer::problem(ProblemCode::Conflict);
        }
        let named = |format: &ExportFormat| address.contains(&format!("format={}", format.name()));
        let format = ExportFormat::ALL.into_iter().find(named).unwrap();
        let hash = ContentHash::of(file);
        assert!(address.contains(&format!("sha256={hash}")), "{address}");
        assert!(format.begins(file));
        let found = self
            .networks
            .iter_mut()
            .find(|(info, _)| info.hash.to_string() == network);
        let (info, _) = found.unwrap();
        let duplicate = info.exports.iter().any(|export| export.hash == hash);
        if !duplicate {
            info.exports.push(NetworkExport {
                format,
                hash,
                bytes: file.len() as u64,
                file: String::new(),
            });
        }
        Answer::json(&ExportReceipt {
            format,
            hash,
            duplicate,
        })
    }

    fn add_network(&mut self, hash: ContentHash, spec: NetworkSpec, file: &[u8]) -> NetworkInfo {
        let status = if self.networks.is_empty() {
            NetworkStatus::Initial
        } else {
            self.play_on();
            self.verdicts.pop_front().unwrap_or(NetworkStatus::Promoted)
        };
        let info = NetworkInfo {
            run: "main".parse().unwrap(),
            number: NetworkNumber(self.networks.len() as u32),
            anchor: None,
            anchor_elo: None,
            hash,
            bytes: file.len() as u64,
            spec,
            status,
            gate: None,
            rating: None,
            puzzles: None,
            training_games: 0,
            positions: None,
            submitted_at: String::new(),
            file: format!("/api/v1/networks/{hash}/file"),
            exports: Vec::new(),
        };
        self.networks.push((info.clone(), file.to_vec()));
        info
    }

    fn report(&mut self, body: &[u8]) -> Answer {
        let report: MetricReport = serde_json::from_slice(body).unwrap();
        let trained = |name: &str| name == "policy_loss";
        let points = report
            .points
            .iter()
            .filter(|p| p.values.keys().any(|name| trained(name)));
        let count = points.count();
        self.metrics += count;
        if count > 0 && std::mem::take(&mut self.stop_at_metrics) {
            self.shutdown.request();
        }
        Answer::new(204, "")
    }
}

/// The cursor of a page's address.
fn after(address: &str) -> i64 {
    let after = address.split("after=").nth(1).unwrap();
    after.split('&').next().unwrap().parse().unwrap()
}
