//! Which workers a run serves: by protocol and by program version, with notice long before.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use rookery_common::ids::RunName;
use rookery_common::protocol::jobs::JobRequest;
use rookery_common::protocol::runs::{RunInfo, RunStatus, VersionPolicy};
use rookery_common::protocol::{OLDEST_PROTOCOL_VERSION, PROTOCOL_VERSION};
use semver::Version;

/// Checks what an operator asks for.
/// The error is a sentence that names what is no version or no time.
pub fn check(policy: &VersionPolicy) -> Result<(), String> {
    for version in [&policy.minimum, &policy.recommended].into_iter().flatten() {
        Version::parse(version)
            .map_err(|error| format!("{version:?} is no version such as 0.2.0: {error}"))?;
    }
    if let Some(cut_off) = &policy.cut_off {
        cut_off.parse::<Timestamp>().map_err(|error| {
            format!("{cut_off:?} is no time such as 2026-12-01T00:00:00Z: {error}")
        })?;
        if policy.minimum.is_none() {
            return Err("a cut-off date needs a minimum version".to_owned());
        }
    }
    Ok(())
}

/// Whether a worker is older than `wanted`; one whose version cannot be read is.
fn older(version: &str, wanted: &str) -> bool {
    match (Version::parse(version), Version::parse(wanted)) {
        (Ok(version), Ok(wanted)) => version < wanted,
        (Err(_), Ok(_)) => true,
        (_, Err(_)) => false,
    }
}

/// What a run wants instead of this worker, if it is too old for it, now or later.
fn lacking<'a>(run: &'a RunInfo, request: &JobRequest) -> Option<&'a str> {
    let minimum = run.versions.minimum.as_deref()?;
    older(&request.version, minimum).then_some(minimum)
}

/// The moment from which too old workers are refused, if it is still to come.
fn grace(run: &RunInfo, now: Timestamp) -> Option<Timestamp> {
    let cut_off = run.versions.cut_off.as_deref()?.parse().ok()?;
    (now < cut_off).then_some(cut_off)
}

/// Why a run does not serve a worker, if it does not.
pub fn refusal(run: &RunInfo, request: &JobRequest, now: Timestamp) -> Option<String> {
    if run.params.has_solver() && !request.solver {
        return Some(format!(
            "run {} searches with `solver`, which this worker does not know: install the newest \
             release; finished games are kept and will be taken",
            run.name
        ));
    }
    let minimum = lacking(run, request)?;
    if grace(run, now).is_some() {
        return None;
    }
    Some(format!(
        "this worker is {}, and run {} needs {minimum} or later: install the newest release; \
         finished games are kept and will be taken",
        request.version, run.name
    ))
}

/// The runs that do not serve this worker, of those that it may play for.
/// The error says why none serves it.
pub fn refused_by(
    runs: &[RunInfo],
    request: &JobRequest,
    now: Timestamp,
) -> Result<BTreeSet<RunName>, String> {
    let is_wanted = |run: &&RunInfo| match &request.run {
        Some(name) => run.name == *name,
        None => run.status == RunStatus::Open,
    };
    let wanted: Vec<&RunInfo> = runs.iter().filter(is_wanted).collect();
    let refusals: BTreeMap<RunName, String> = wanted
        .iter()
        .filter_map(|run| Some((run.name.clone(), refusal(run, request, now)?)))
        .collect();
    if !wanted.is_empty() && refusals.len() == wanted.len() {
        let reasons: Vec<String> = refusals.into_values().collect();
        return Err(reasons.join("; "));
    }
    Ok(refusals.into_keys().collect())
}

/// What a worker's people should know.
pub fn notices(run: &RunInfo, request: &JobRequest, now: Timestamp) -> Vec<String> {
    let mut notices = Vec::new();
    if request.protocol < PROTOCOL_VERSION {
        notices.push(format!(
            "this worker speaks protocol {}; {OLDEST_PROTOCOL_VERSION} to {PROTOCOL_VERSION} are \
             served now, and one fewer with the next: install the newest release when it suits you",
            request.protocol
        ));
    }
    let version = &request.version;
    if let Some((minimum, cut_off)) = lacking(run, request).zip(grace(run, now)) {
        notices.push(format!(
            "from {cut_off} on, run {} needs worker {minimum} or later, and this is {version}: \
             install the newest release before",
            run.name
        ));
    } else if let Some(better) = &run.versions.recommended
        && older(version, better)
    {
        notices.push(format!(
            "run {} recommends worker {better}, and this is {version}: \
             install the newest release when it suits you",
            run.name
        ));
    }
    notices
}

#[cfg(test)]
pub(crate) mod tests {
    use rookery_common::params::RunParams;
    use rookery_common::protocol::jobs::Backend;

    use super::*;

    fn run(name: &str, minimum: &str, cut_off: Option<&str>) -> RunInfo {
        RunInfo {
            name: name.parse().unwrap(),
            title: None,
            description: String::new(),
            contact: None,
            links: Vec::new(),
            status: RunStatus::Open,
            params: RunParams::default(),
            key: None,
            versions: VersionPolicy {
                minimum: (!minimum.is_empty()).then(|| minimum.to_owned()),
                recommended: Some("0.9.0".to_owned()),
                cut_off: cut_off.map(str::to_owned),
            },
            best: None,
            networks: 0,
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

    pub(crate) fn request(version: &str, run: Option<&str>) -> JobRequest {
        JobRequest {
            protocol: PROTOCOL_VERSION,
            version: version.to_owned(),
            worker: "w".to_owned(),
            backend: Backend::Uniform,
            run: run.map(|run| run.parse().unwrap()),
            concurrent_games: 0,
            evals_per_second: 0.0,
            programs: false,
            solver: true,
        }
    }

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    #[test]
    fn an_old_worker_is_warned_before_the_date_and_refused_after_it() {
        let date = "2026-12-01T00:00:00Z";
        let run = run("main", "0.2.0", Some(date));
        let old = request("0.1.9", None);
        let before = at("2026-11-30T23:59:59Z");
        assert_eq!(refusal(&run, &old, before), None);
        let told = notices(&run, &old, before).join("\n");
        assert!(told.contains(date) && told.contains("0.2.0"), "{told}");
        let refused = refusal(&run, &old, at(date)).unwrap();
        assert!(
            refused.contains("0.2.0") && refused.contains("install"),
            "{refused}"
        );
        for fine in ["0.2.0", "0.10.0", "1.0.0"] {
            assert_eq!(refusal(&run, &request(fine, None), at(date)), None);
        }
        assert!(refusal(&run, &request("nonsense", None), at(date)).is_some());
    }

    #[test]
    fn a_run_with_the_solver_refuses_workers_that_do_not_know_it() {
        let now = at("2026-12-01T00:00:00Z");
        let mut run = run("main", "0.1.0", None);
        let mut request = request("0.9.0", None);
        let mut played = run.params.clone();
        for search in [
            &mut played.selfplay.search,
            &mut played.puzzle.search,
            &mut played.matches.search,
        ] {
            search.solver = false;
        }
        for search in [
            |params: &mut RunParams| params.selfplay.search.solver = true,
            |params: &mut RunParams| params.puzzle.search.solver = true,
            |params: &mut RunParams| params.matches.search.solver = true,
        ] {
            run.params = played.clone();
            search(&mut run.params);
            request.solver = false;
            let refused = refusal(&run, &request, now).unwrap();
            assert!(refused.contains("`solver`"), "{refused}");
            request.solver = true;
            assert_eq!(refusal(&run, &request, now), None);
        }
    }

    #[test]
    fn a_recommendation_is_only_that() {
        let run = run("main", "", None);
        let now = at("2026-12-01T00:00:00Z");
        assert_eq!(refusal(&run, &request("0.1.0", None), now), None);
        assert!(notices(&run, &request("0.1.0", None), now)[0].contains("recommends"));
        assert!(notices(&run, &request("0.9.0", None), now).is_empty());
        let mut ancient = request("0.9.0", None);
        ancient.protocol = PROTOCOL_VERSION - 1;
        assert!(notices(&run, &ancient, now)[0].contains("protocol"));
    }

    #[test]
    fn a_worker_goes_to_a_run_that_serves_it() {
        let runs = [run("open", "", None), run("strict", "0.5.0", None)];
        let now = at("2026-12-01T00:00:00Z");
        let refused_by = |version, name| {
            let found = refused_by(&runs, &request(version, name), now)?;
            let names = found.iter().map(ToString::to_string);
            Ok::<_, String>(names.collect::<Vec<String>>())
        };
        let nobody = Ok(Vec::new());
        assert_eq!(refused_by("0.6.0", None), nobody);
        assert_eq!(refused_by("0.4.0", None), Ok(vec!["strict".to_owned()]));
        assert_eq!(refused_by("0.4.0", Some("open")), nobody);
        let strict = refused_by("0.4.0", Some("strict")).unwrap_err();
        assert!(strict.contains("strict"), "{strict}");
        // The ledger says that there is no such run.
        assert_eq!(refused_by("0.4.0", Some("unknown")), nobody);
    }

    #[test]
    fn what_is_no_policy_is_named() {
        let policy = |minimum: Option<&str>, cut_off: Option<&str>| VersionPolicy {
            minimum: minimum.map(str::to_owned),
            recommended: None,
            cut_off: cut_off.map(str::to_owned),
        };
        assert!(check(&policy(Some("0.2.0"), Some("2026-12-01T00:00:00Z"))).is_ok());
        assert!(
            check(&policy(Some("newest"), None))
                .unwrap_err()
                .contains("newest")
        );
        assert!(
            check(&policy(Some("0.2.0"), Some("soon")))
                .unwrap_err()
                .contains("soon")
        );
        assert!(check(&policy(None, Some("2026-12-01T00:00:00Z"))).is_err());
    }
}
