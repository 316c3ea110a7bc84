//! `run …`: training runs.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::{Args, Subcommand};
use rookery_common::ids::{NetworkNumber, RunName};
use rookery_common::params::RunParams;
use rookery_common::protocol::runs::{RunInfo, RunPatch, RunStatus, VersionPolicy};
use rookery_common::protocol::server::{Link, Presentation};
use rookery_common::text::quantity;

use super::{
    closing, command_line, create_database, open_database, refit, refuse_moved, run_anchor,
    run_key, say, say_json,
};
use crate::api::runs::{check_description, check_patch};
use crate::api::trust::check_reason;
use crate::config::Settings;
use crate::db::{Rollback, RunDraft, SharedDatabase};
use crate::versions;

/// Commands on runs.
#[derive(Debug, Subcommand)]
pub enum RunCommand {
    /// Create a run. It waits for its first network, which a trainer submits.
    Create(CreateArgs),
    /// List the runs.
    List {
        /// List archived runs as well.
        #[arg(long)]
        archived: bool,
        /// Print a JSON array.
        #[arg(long)]
        json: bool,
    },
    /// Show a run with its parameters as JSON, or its parameters as a file for `run set --params`.
    Show {
        /// The run's name.
        name: RunName,
        /// Print the parameters alone, as `run create` and `run set` take them with --params.
        #[arg(long)]
        params: bool,
    },
    /// Hand out no more jobs of a run. Chunks of earlier jobs are still taken.
    Pause(NameArgs),
    /// Hand out jobs of a run again.
    Open(NameArgs),
    /// Hide a run from lists, and hand out no jobs of it. It stays readable by its name.
    Archive(NameArgs),
    /// Bring an archived run back, paused.
    Restore(NameArgs),
    /// Delete an archived run with its games and networks. This cannot be undone. The files go with the next
    /// `storage sweep --remove`; contributors keep credit and trust.
    Delete {
        /// The run's name.
        name: RunName,
        /// Do it: it cannot be undone.
        #[arg(long)]
        yes: bool,
    },
    /// Change a run's title, description, contact, links, parameters, or which workers it serves. Jobs that workers
    /// hold keep their parameters.
    Set(SetArgs),
    /// Reject a candidate whatever its gate match says, for example because no worker can compute
    /// it. The next candidate's gate match begins.
    Reject {
        /// The run's name.
        name: RunName,
        /// The candidate's number.
        number: u32,
        /// Why; it is shown as the reason of the gate match.
        #[arg(long, value_name = "TEXT")]
        reason: String,
    },
    /// Make an earlier best network best again, for example because games of a liar made the later ones. Networks that
    /// were promoted after it are demoted; candidates stay and are rejected one by one.
    RollBack {
        /// The run's name.
        name: RunName,
        /// The number of the network to make best again.
        number: u32,
        /// Why; it is kept in the operator log.
        #[arg(long, value_name = "TEXT")]
        reason: String,
    },
    /// Give an anchor its known Elo, on a scale that others use. The run's ratings are then counted from it.
    Anchor(run_anchor::AnchorArgs),
    /// Sign the run's networks with a key, so that workers take no others.
    #[command(subcommand)]
    Key(run_key::KeyCommand),
}

/// `run create`
#[derive(Debug, Args)]
pub struct CreateArgs {
    /// The run's name: 1 to 32 of a-z, 0-9 and -, beginning with a letter.
    pub name: RunName,
    /// Read the run's parameters from this TOML or JSON file. Missing parameters have their defaults.
    #[arg(long, value_name = "FILE")]
    pub params: Option<PathBuf>,
    /// What the run is for, in a sentence.
    #[arg(long, default_value = "")]
    pub description: String,
    /// How the operator presents the run.
    #[command(flatten)]
    pub presentation: PresentationArgs,
}

/// How the operator presents a run.
#[derive(Debug, Args)]
pub struct PresentationArgs {
    /// The name that people read, at most 80 characters. A run without one has the coordinator's.
    #[arg(long, value_name = "TEXT")]
    pub title: Option<String>,
    /// Where people reach the operator: an address such as ann@example.org, or a page. A run without
    /// one has the coordinator's.
    #[arg(long, value_name = "ADDRESS")]
    pub contact: Option<String>,
    /// A link that pages show, such as 'Chat=https://example.org/chat'; may be given up to 8 times. A
    /// run without any has the coordinator's.
    #[arg(long = "link", value_name = "TEXT=URL", value_parser = Link::parse)]
    pub links: Option<Vec<Link>>,
}

/// A run's name.
#[derive(Debug, Args)]
pub struct NameArgs {
    /// The run's name.
    pub name: RunName,
}

/// `run set`
#[derive(Debug, Args)]
pub struct SetArgs {
    /// The run's name.
    pub name: RunName,
    /// Replace all parameters by those of this TOML or JSON file.
    #[arg(long, value_name = "FILE")]
    pub params: Option<PathBuf>,
    /// Replace the description.
    #[arg(long)]
    pub description: Option<String>,
    /// What else is replaced; an empty title or contact takes it away.
    #[command(flatten)]
    pub presentation: PresentationArgs,
    /// Remove all links.
    #[arg(long, conflicts_with = "links")]
    pub no_links: bool,
    /// Serve no worker below this version; `none` serves all, and ends the date of `--cut-off`.
    #[arg(long, value_name = "VERSION")]
    pub minimum_worker: Option<String>,
    /// Tell workers below this version that there is a better one; `none` ends the notice.
    #[arg(long, value_name = "VERSION")]
    pub recommended_worker: Option<String>,
    /// Refuse workers below the minimum from this time on, for example 2026-12-01T00:00:00Z, and announce it to them
    /// until then; `none` refuses them at once.
    #[arg(long, value_name = "TIME")]
    pub cut_off: Option<String>,
}

pub async fn run(settings: &Settings, command: RunCommand) -> anyhow::Result<()> {
    let db = match &command {
        RunCommand::Create(_) => create_database(settings).await?,
        _ => open_database(settings).await?,
    };
    closing(db, async |db| {
        if !matches!(command, RunCommand::List { .. } | RunCommand::Show { .. }) {
            refuse_moved(db).await?;
        }
        dispatch(settings, db, command).await
    })
    .await
}

async fn dispatch(
    settings: &Settings,
    db: &SharedDatabase,
    command: RunCommand,
) -> anyhow::Result<()> {
    match command {
        RunCommand::Create(args) => {
            let (
                name,
                PresentationArgs {
                    title,
                    contact,
                    links,
                },
            ) = (args.name, args.presentation);
            let links = links.unwrap_or_default();
            let presentation = Presentation {
                title,
                contact,
                links,
            };
            create(
                db,
                name.clone(),
                args.params.as_deref(),
                args.description,
                presentation,
            )
            .await?;
            say(&format!("Run {name} is created."))
        }
        RunCommand::List { archived, json } => list(db, archived, json).await,
        RunCommand::Show { name, params: true } => {
            let text = db.run(&name).await?.params.to_text()?;
            say(text.trim_end())
        }
        RunCommand::Show { name, .. } => say_json(&db.run(&name).await?),
        RunCommand::Pause(args) => set_status(db, &args.name, RunStatus::Paused).await,
        RunCommand::Open(args) => set_status(db, &args.name, RunStatus::Open).await,
        RunCommand::Archive(args) => archive(db, &args.name, true).await,
        RunCommand::Restore(args) => archive(db, &args.name, false).await,
        RunCommand::Delete { name, yes } => delete(db, &name, yes).await,
        RunCommand::Reject {
            name,
            number,
            reason,
        } => reject(db, &name, number, &reason).await,
        RunCommand::RollBack {
            name,
            number,
            reason,
        } => roll_back(db, &name, NetworkNumber(number), &reason).await,
        RunCommand::Anchor(args) => run_anchor::run(db, &args).await,
        RunCommand::Key(command) => run_key::run(settings, db, command).await,
        RunCommand::Set(args) => {
            let params = args.params.as_deref().map(read_params).transpose()?;
            let patch = RunPatch {
                versions: versions_of(db, &args).await?,
                title: args.presentation.title,
                description: args.description,
                contact: args.presentation.contact,
                links: args
                    .presentation
                    .links
                    .or_else(|| args.no_links.then(Vec::new)),
                status: None,
                archived: None,
                params,
            };
            check_patch(&patch).map_err(anyhow::Error::msg)?;
            anyhow::ensure!(
                patch != RunPatch::default(),
                "nothing is given that could be changed; see `run set --help`"
            );
            db.patch_run(&args.name, patch, command_line()).await?;
            say(&format!("Run {} is changed.", args.name))
        }
    }
}

/// The versions that the flags ask for, if they ask for any; what they do not name stays.
async fn versions_of(db: &SharedDatabase, args: &SetArgs) -> anyhow::Result<Option<VersionPolicy>> {
    let flags = [
        &args.minimum_worker,
        &args.recommended_worker,
        &args.cut_off,
    ];
    if flags.iter().all(|flag| flag.is_none()) {
        return Ok(None);
    }
    let before = db.run(&args.name).await?.versions;
    let choose = |flag: &Option<String>, before| match flag.as_deref() {
        None => before,
        Some("none") => None,
        Some(text) => Some(text.to_owned()),
    };
    let minimum = choose(&args.minimum_worker, before.minimum);
    // The date of a minimum that is no more is none either.
    let kept = before.cut_off.filter(|_| minimum.is_some());
    let policy = VersionPolicy {
        recommended: choose(&args.recommended_worker, before.recommended),
        cut_off: choose(&args.cut_off, kept),
        minimum,
    };
    versions::check(&policy).map_err(anyhow::Error::msg)?;
    Ok(Some(policy))
}

/// Creates a run with the parameters of a file.
pub(super) async fn create(
    db: &SharedDatabase,
    name: RunName,
    params: Option<&Path>,
    description: String,
    presentation: Presentation,
) -> anyhow::Result<()> {
    check_description(&description).map_err(anyhow::Error::msg)?;
    presentation.check().map_err(anyhow::Error::msg)?;
    let params = params.map(read_params).transpose()?.unwrap_or_default();
    let draft = RunDraft {
        name,
        description,
        presentation,
        params,
    };
    Ok(db.create_run(draft, command_line()).await?)
}

fn read_params(path: &Path) -> anyhow::Result<RunParams> {
    let shown = path.display();
    let text = std::fs::read_to_string(path)
        .with_context(|| format!("RK-0006: cannot read the parameters {shown}"))?;
    RunParams::from_text(&text)
        .with_context(|| format!("RK-0005: the parameters in {shown} are not valid"))
}

async fn list(db: &SharedDatabase, archived: bool, json: bool) -> anyhow::Result<()> {
    let mut runs = db.runs().await?;
    runs.retain(|run| run.archived_at.is_none() || archived);
    if json {
        return say_json(&runs);
    }
    runs.iter().try_for_each(|run| say(&line(run)))
}

fn line(run: &RunInfo) -> String {
    let best = run
        .best
        .map_or_else(|| "none".to_owned(), |best| best.to_string());
    let state = match run.archived_at {
        Some(_) => "archived",
        None => run.status.name(),
    };
    format!(
        "{}  {state}  best {best}  {}  {}  {}",
        run.name,
        quantity(run.networks, "network"),
        quantity(run.games, "game"),
        quantity(run.positions, "position")
    )
}

async fn set_status(db: &SharedDatabase, name: &RunName, status: RunStatus) -> anyhow::Result<()> {
    let patch = RunPatch {
        status: Some(status),
        ..RunPatch::default()
    };
    db.patch_run(name, patch, command_line()).await?;
    say(&format!("Run {name} is {}.", status.name()))
}

async fn archive(db: &SharedDatabase, name: &RunName, archived: bool) -> anyhow::Result<()> {
    let patch = RunPatch {
        archived: Some(archived),
        ..RunPatch::default()
    };
    db.patch_run(name, patch, command_line()).await?;
    say(&if archived {
        format!("Run {name} is archived.")
    } else {
        format!("Run {name} is back, and paused.")
    })
}

async fn delete(db: &SharedDatabase, name: &RunName, yes: bool) -> anyhow::Result<()> {
    anyhow::ensure!(
        yes,
        "RK-0223: run {name} and its games and networks would be deleted, which cannot be undone; add --yes"
    );
    db.delete_run(name, command_line()).await?;
    while db.remove_deleted().await? > 0 {}
    say(&format!(
        "Run {name} is deleted. `storage sweep --remove` removes its files."
    ))
}

async fn reject(
    db: &SharedDatabase,
    name: &RunName,
    number: u32,
    reason: &str,
) -> anyhow::Result<()> {
    let reason = check_reason(reason).map_err(anyhow::Error::msg)?;
    let events = db
        .reject_network(name, NetworkNumber(number), reason, command_line())
        .await?;
    db.announce(&events).await?;
    refit(db, name).await?;
    say(&format!("Network {number} is rejected."))
}

async fn roll_back(
    db: &SharedDatabase,
    name: &RunName,
    to: NetworkNumber,
    reason: &str,
) -> anyhow::Result<()> {
    let reason = check_reason(reason).map_err(anyhow::Error::msg)?;
    let best = db.run(name).await?.best;
    let from = best.with_context(|| format!("run {name} has no network yet"))?;
    anyhow::ensure!(from != to, "network {to} is best already");
    let rollback = Rollback {
        from,
        to,
        reason: reason.to_owned(),
    };
    let events = db.roll_back(name, rollback, command_line()).await?;
    anyhow::ensure!(
        !events.is_empty(),
        "network {to} of run {name} cannot be best again: it never was, or it was demoted. The page \
         /runs/{name}/networks shows which are promoted"
    );
    db.announce(&events).await?;
    refit(db, name).await?;
    say(&format!(
        "Network {to} is best again; what was promoted after it is demoted."
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_parameters_is_named_if_it_is_wrong() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run.toml");
        std::fs::write(&path, "[selfplay.search]\nvisits = 32\n").unwrap();
        assert_eq!(read_params(&path).unwrap().selfplay.search.visits, 32);
        std::fs::write(&path, "[selfplay.search]\nvisit = 32\n").unwrap();
        let error = format!("{:#}", read_params(&path).unwrap_err());
        assert!(error.contains("run.toml"), "{error}");
        assert!(error.contains("selfplay.search.visit"), "{error}");
    }
}
