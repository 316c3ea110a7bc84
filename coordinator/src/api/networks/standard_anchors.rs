//! The anchors of a new run: built-in programs, from any legal move on, so that its ratings mean something.
//!
//! They come in with the run's first network, which they are compared with, unless `scheduling.anchor_share` is 0.

use rookery_common::ids::{AnchorName, RunName};
use rookery_common::network::file::verify;
use rookery_common::network::{Program, program_file};
use rookery_common::protocol::runs::RunInfo;
use rookery_common::rating::AnchorElo;

use super::{Submission, enter};
use crate::api::error::{ApiError, ApiResult};
use crate::app::App;
use crate::db::{AnchorDraft, Principal};

/// Each beats the one before it in most games, so that games tie all of them to a run's networks sooner or later.
const RUNGS: [Program; 4] = [
    Program::Random,
    Program::AlphaBeta {
        depth: 1,
        random: 50,
    },
    Program::alpha_beta(1),
    Program::alpha_beta(2),
];

/// Whether a run wants them, and is so new that it has no network but the first, and perhaps some of them.
fn are_wanted(run: &RunInfo) -> bool {
    let scheduling = &run.params.scheduling;
    scheduling.anchor_share > 0.0
        && scheduling.rating_pairs > 0
        && run.networks <= RUNGS.len() as u32
}

/// Brings them in, in the name of who has submitted the first network, and says whether the run wants them. Those that
/// are there stay as they are.
pub(super) async fn add(app: &App, run: &RunName, sender: &Principal) -> ApiResult<bool> {
    let info = app.db.run(run).await?;
    if !are_wanted(&info) {
        return Ok(false);
    }
    let secret = app.keys.load(run);
    let secret = secret.map_err(|error| ApiError::internal(&error))?;
    if info.key.is_some() && secret.is_none() {
        tracing::warn!(%run, "The run has no anchors yet: its networks are signed, and the coordinator does not have \
            the secret key. Submit them with `rookery-trainer submit --program` and `--signing-key`.");
        return Ok(false);
    }
    for program in RUNGS {
        let anchor = AnchorDraft {
            name: name_of(program)?,
            elo: (program == Program::Random).then(AnchorElo::default),
        };
        let bytes = program_file(program).map_err(|error| ApiError::internal(&error))?;
        let verified = verify(&bytes).map_err(|error| ApiError::internal(&error))?;
        let submission = Submission {
            sender: sender.clone(),
            run: run.clone(),
            key: info.key.clone(),
            hash: verified.hash,
            signature: None,
            anchor: Some(anchor),
        };
        enter(app, &submission, verified.spec, bytes.into()).await?;
    }
    Ok(true)
}

/// The program's name with dashes for its colons.
fn name_of(program: Program) -> ApiResult<AnchorName> {
    let name = program.to_string().replace(':', "-");
    name.parse::<AnchorName>()
        .map_err(|error| ApiError::internal(&format!("{name}: {error}")))
}
