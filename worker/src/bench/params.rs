//! How the games of a measurement are played: as by default, or as a run plays them.

use rookery_common::command_line::read_params;
use rookery_common::params::{RunParams, SearchParams, SelfPlayParams};

use crate::cli::BenchArgs;

/// Random moves at the beginning, so that games are not alike.
const OPENING_PLIES: u32 = 8;
/// Visits of each move if nothing says otherwise.
const VISITS: u32 = 100;

/// The parameters of the run's file, if one is given; the flag's visits, if they are.
pub(super) fn selfplay(args: &BenchArgs) -> anyhow::Result<SelfPlayParams> {
    let mut params = match &args.params {
        Some(path) => read_params(path, RunParams::from_text)?.selfplay,
        None => SelfPlayParams {
            search: SearchParams {
                visits: VISITS,
                ..SearchParams::default()
            },
            opening_plies: OPENING_PLIES,
            ..SelfPlayParams::default()
        },
    };
    if let Some(visits) = args.visits {
        params.search.visits = visits;
    }
    params.check()?;
    Ok(params)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_runs_file_says_how_and_flags_win() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run.toml");
        let text = "[selfplay]\nfull_search_share = 0.25\n[selfplay.search]\nvisits = 300\n";
        std::fs::write(&path, text).unwrap();
        let args = |visits, params| BenchArgs {
            visits,
            params,
            ..BenchArgs::default()
        };
        let read = selfplay(&args(None, Some(path.clone()))).unwrap();
        assert_eq!((read.search.visits, read.full_search_share), (300, 0.25));
        assert_eq!(
            selfplay(&args(Some(50), Some(path))).unwrap().search.visits,
            50
        );
        let default = selfplay(&args(None, None)).unwrap();
        assert_eq!((default.search.visits, default.opening_plies), (100, 8));
        assert!(selfplay(&args(Some(1), None)).is_err());
        let typo = folder.path().join("typo.toml");
        std::fs::write(&typo, "[selfplay.search]\nvisit = 300\n").unwrap();
        let error = selfplay(&args(None, Some(typo))).unwrap_err();
        assert!(format!("{error:#}").contains("selfplay.search.visit"));
    }
}
