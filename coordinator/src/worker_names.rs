//! Whether two machines of a contributor use one worker name at the same time.
//!
//! A coordinator sees a machine as a token, an address, a backend and a program version. One machine
//! may change each of them, but it does not change back: where requests of two machines alternate,
//! there are two. Machines that are alike in everything cannot be told apart.

use std::collections::HashMap;

use jiff::{SignedDuration, Timestamp};
use parking_lot::Mutex;
use rookery_common::ids::UserId;
use rookery_common::protocol::jobs::JobRequest;

use crate::limits::address::ClientAddress;

/// How far apart a machine's requests may lie, and for how long two machines are remembered.
const WINDOW: SignedDuration = SignedDuration::from_mins(30);
/// Names that are remembered at most.
const MOST: usize = 1 << 16;

#[derive(Debug, Clone, PartialEq, Eq)]
struct Machine {
    token: i64,
    address: Option<ClientAddress>,
    backend: &'static str,
    version: String,
}

impl Machine {
    /// Whether both may be one machine: one that has addresses of both families uses now one, now the
    /// other.
    fn may_be(&self, other: &Self) -> bool {
        let one_family = match (self.address, other.address) {
            (Some(one), Some(other)) => one.0.is_ipv4() == other.0.is_ipv4(),
            _ => false,
        };
        let far = one_family && self.address != other.address;
        !far && (self.token, self.backend, &self.version)
            == (other.token, other.backend, &other.version)
    }
}

#[derive(Debug)]
struct Requests {
    last: (Machine, Timestamp),
    /// The one that asked before that.
    before: Option<(Machine, Timestamp)>,
    /// When two were last seen to alternate.
    shared: Option<Timestamp>,
}

/// Names of workers that asked for jobs lately.
#[derive(Debug, Default)]
pub struct WorkerNames(Mutex<HashMap<(UserId, String), Requests>>);

impl WorkerNames {
    /// Notes a request for a job; whether another machine uses the worker's name as well.
    pub fn is_shared(
        &self,
        (user, token): (UserId, i64),
        address: Option<ClientAddress>,
        request: &JobRequest,
        now: Timestamp,
    ) -> bool {
        let machine = Machine {
            token,
            address,
            backend: request.backend.name(),
            version: request.version.clone(),
        };
        let mut names = self.0.lock();
        if names.len() >= MOST {
            names.clear();
        }
        let key = (user, request.worker.clone());
        let requests = names.entry(key).or_insert_with(|| Requests {
            last: (machine.clone(), now),
            before: None,
            shared: None,
        });
        requests.add(machine, now);
        requests.shared.is_some_and(|at| is_recent(at, now))
    }
}

impl Requests {
    fn add(&mut self, machine: Machine, now: Timestamp) {
        if !self.last.0.may_be(&machine) {
            let before = self.before.take();
            if before.is_some_and(|(before, at)| before.may_be(&machine) && is_recent(at, now)) {
                self.shared = Some(now);
            }
            self.before = Some(self.last.clone());
        }
        self.last = (machine, now);
    }
}

fn is_recent(at: Timestamp, now: Timestamp) -> bool {
    now.duration_since(at) < WINDOW
}

#[cfg(test)]
mod tests {
    use rookery_common::protocol::jobs::Backend;

    use super::*;
    use crate::versions;

    fn request(backend: Backend) -> JobRequest {
        JobRequest {
            backend,
            ..versions::tests::request("0.1.0", None)
        }
    }

    fn address(text: &str) -> ClientAddress {
        ClientAddress(text.parse().unwrap())
    }

    #[test]
    fn machines_that_alternate_are_two_and_one_that_moves_is_one() {
        let (names, start) = (WorkerNames::default(), Timestamp::UNIX_EPOCH);
        let ask = |user: i64, token, from: &str, backend, minutes: i64| {
            let now = start + SignedDuration::from_mins(minutes);
            let from = Some(address(from));
            names.is_shared((UserId(user), token), from, &request(backend), now)
        };
        use Backend::{CpuF32, CudaF16};
        let asked = [(10, 0), (11, 1), (10, 2), (11, 3)];
        let two = asked.map(|(token, at)| ask(1, token, "192.0.2.1", CpuF32, at));
        assert_eq!(two, [false, false, true, true], "two tokens");
        assert!(ask(1, 10, "192.0.2.1", CpuF32, 20), "for a while");
        assert!(!ask(1, 10, "192.0.2.1", CpuF32, 60), "one is gone");

        let backends = [CpuF32, CudaF16, CpuF32];
        let two = backends.map(|backend| ask(2, 20, "192.0.2.1", backend, 0));
        assert_eq!(two, [false, false, true], "two devices at one address");

        let moves = ["192.0.2.1", "192.0.2.2", "192.0.2.2", "192.0.2.3"];
        assert!(!moves.iter().any(|from| ask(3, 30, from, CpuF32, 0)));
        let families = ["192.0.2.1", "2001:db8::1", "192.0.2.1", "2001:db8::1"];
        assert!(!families.iter().any(|from| ask(4, 40, from, CpuF32, 0)));
        assert!(!ask(5, 50, "192.0.2.1", CpuF32, 0), "another contributor");
    }
}
