//! The commands of docs/incidents.md, run as they stand there: after a poisoner, a thief of a token and a leaked key a
//! run goes on without what they did.

use std::collections::VecDeque;
use std::process::Command;

use anyhow::{Context as _, ensure};
use reqwest::Method;
use rookery_common::ids::NetworkNumber;
use rookery_common::params::RunParams;
use rookery_common::protocol::networks::NetworkStatus;
use rookery_common::protocol::people::NewToken;
use rookery_common::protocol::runs::{RunInfo, RunStatus};
use rookery_common::rating::gate::GateRule;
use rookery_tests::client::Client;
use rookery_tests::params::tiny;
use rookery_tests::player::honest_chunk;
use rookery_tests::programs::{Running, eventually};
use rookery_tests::site::{RUN, Site};

const PAGE: &str = include_str!("../../docs/incidents.md");

/// The commands of a section, in order.
struct Runbook {
    commands: VecDeque<&'static str>,
}

impl Runbook {
    fn section(title: &str) -> anyhow::Result<Self> {
        let (_, rest) = PAGE
            .split_once(&format!("\n## {title}\n"))
            .with_context(|| format!("docs/incidents.md has no section {title:?}"))?;
        let section = rest.split("\n## ").next().unwrap_or(rest);
        let blocks = section.split("```").skip(1).step_by(2);
        let lines = blocks.flat_map(str::lines).map(str::trim);
        let commands = lines.filter(|line| !line.is_empty()).collect();
        Ok(Self { commands })
    }

    /// The next command, which must begin like this.
    fn next(&mut self, beginning: &str) -> anyhow::Result<&'static str> {
        let command = self.commands.pop_front();
        let command = command.with_context(|| format!("{beginning:?} should come next"))?;
        ensure!(
            command.starts_with(beginning),
            "{command:?} comes where {beginning:?} should"
        );
        Ok(command)
    }

    /// Runs the next command, one of the coordinator's, with other words in place of some of the page's.
    fn coordinator(
        &mut self,
        site: &Site,
        beginning: &str,
        replaced: &[(&str, &str)],
    ) -> anyhow::Result<String> {
        let command = self.next(&format!("rookery-coordinator {beginning}"))?;
        let words = words(command)
            .into_iter()
            .skip(1)
            .map(|word| {
                let other = replaced.iter().find(|(there, _)| *there == word);
                other.map_or(word, |(_, other)| (*other).to_owned())
            })
            .collect::<Vec<_>>();
        site.command(&words.iter().map(String::as_str).collect::<Vec<_>>())
    }

    fn end(&self) -> anyhow::Result<()> {
        ensure!(self.commands.is_empty(), "not tried: {:?}", self.commands);
        Ok(())
    }
}

/// Words of a command line, in which double quotes keep spaces.
fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    for (place, part) in line.split('"').enumerate() {
        if place % 2 == 1 {
            words.push(part.to_owned());
        } else {
            words.extend(part.split_whitespace().map(str::to_owned));
        }
    }
    words
}

/// Uploads honest games until the run has a network of this number.
async fn play_until(site: &Site, player: &Client, number: u32) -> anyhow::Result<()> {
    loop {
        let run = site.run().await?;
        if run.networks > number {
            return Ok(());
        }
        play(player).await?;
    }
}

/// Plays a job honestly.
async fn play(player: &Client) -> anyhow::Result<()> {
    let job = player.job().await?.context("there is a job")?;
    let receipt = player.upload(&honest_chunk(&job)?).await?;
    receipt.map_err(|problem| anyhow::anyhow!("an honest chunk was refused: {problem}"))?;
    Ok(())
}

/// Training parameters by which each candidate is promoted at once.
fn ungated() -> RunParams {
    let mut params = tiny();
    params.gate = GateRule::None;
    params
}

async fn statuses(site: &Site) -> anyhow::Result<Vec<NetworkStatus>> {
    let mut networks = site.trainer.networks(RUN).await?;
    networks.sort_by_key(|network| network.number);
    Ok(networks.iter().map(|network| network.status).collect())
}

fn trainer(site: &Site, more: &[&str]) -> anyhow::Result<Running> {
    let flags = ["--device", "cpu", "--threads", "1", "--poll-every", "0.1"];
    site.trainer_with("1x8", &[&flags, more].concat())
}

/// Ends a trainer after one candidate. Else the games that came while it was trained would make the next one, and those of
/// the contributor who plays then would not be in it.
const ONE: [&str; 2] = ["--candidates", "1"];

#[tokio::test]
async fn a_run_goes_on_without_what_a_poisoner_did() -> anyhow::Result<()> {
    use NetworkStatus::{Demoted, Initial, Promoted, Rejected};
    let mut runbook = Runbook::section("A poisoner is found late")?;
    let site = Site::start(&ungated()).await?;
    let mut training = trainer(&site, &ONE)?;
    let ann = site.client().register("ann").await?;
    let mallory = site.client().register("mallory").await?;
    eventually("the first network is there", async || {
        Ok(site.run().await?.best.is_some().then_some(()))
    })
    .await?;
    play_until(&site, &ann, 1).await?;
    ensure!(training.wait()?.success(), "{}", training.printed());
    play(&mallory).await?;
    training = trainer(&site, &ONE)?;
    play_until(&site, &mallory, 2).await?;
    assert_eq!(statuses(&site).await?, [Initial, Promoted, Promoted]);

    runbook.coordinator(&site, "run pause", &[])?;
    assert_eq!(site.run().await?.status, RunStatus::Paused);
    runbook.next("systemctl stop rookery-trainer")?;
    training.interrupt()?;
    // A candidate of what the poisoner sent, which waits for its gate match.
    let gated = site.path("gated.json").display().to_string();
    std::fs::write(&gated, serde_json::to_vec(&tiny())?)?;
    site.command(&["run", "set", RUN, "--params", &gated])?;
    let candidate = site.submit_random(7).await?;
    assert_eq!(candidate.number, NetworkNumber(3));

    let before = site.run().await?.training_positions;
    let said = runbook.coordinator(&site, "user quarantine", &[])?;
    ensure!(
        said.contains("networks 2, 3 were submitted after") && said.contains("best among them"),
        "{said}"
    );
    ensure!(site.run().await?.training_positions < before);
    let report = site.command(&["user", "trust", "mallory", "--json"])?;
    let report: serde_json::Value = serde_json::from_str(&report)?;
    assert_eq!(report["level"], "quarantined");
    assert_eq!(
        report["exposures"][0]["networks"],
        serde_json::json!([2, 3])
    );

    runbook.coordinator(&site, "run roll-back", &[("7", "1")])?;
    assert_eq!(site.run().await?.best, Some(NetworkNumber(1)));
    runbook.coordinator(&site, "run reject", &[("9", "3")])?;
    assert_eq!(
        statuses(&site).await?,
        [Initial, Promoted, Demoted, Rejected]
    );

    let moved = runbook.next("mv ")?;
    let done = Command::new("sh")
        .args(["-c", moved])
        .current_dir(site.path(""))
        .status()?;
    ensure!(done.success(), "{moved}");
    let free = site.path("ungated.json").display().to_string();
    std::fs::write(&free, serde_json::to_vec(&ungated())?)?;
    site.command(&["run", "set", RUN, "--params", &free])?;
    runbook.next("systemctl start rookery-trainer")?;
    let training = trainer(&site, &[])?;
    runbook.coordinator(&site, "run open", &[])?;
    play_until(&site, &ann, 4).await?;
    let plans = std::fs::read_to_string(site.path("trainer").join("metrics.jsonl"))?;
    let window = plans
        .lines()
        .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok())
        .filter(|line| line["kind"] == "plan")
        .filter_map(|line| line["window"].as_f64())
        .next_back()
        .context("the trainer has planned a candidate")?;
    let honest = site.run().await?.training_positions;
    ensure!(
        window <= honest as f64,
        "{window} positions, {honest} honest ones"
    );
    assert_eq!(statuses(&site).await?[4], Promoted);
    training.kill()?;

    runbook.coordinator(&site, "ledger check", &[])?;
    let log = runbook.coordinator(&site, "log", &[])?;
    for act in ["quarantine", "roll-back", "reject-network"] {
        ensure!(log.contains(act), "{log}");
    }
    // What cannot be best is refused, and said.
    for (number, why) in [("2", "demoted"), ("9", "never was"), ("4", "best already")] {
        let words = ["run", "roll-back", RUN, number, "--reason", "test"];
        let error = site.command(&words).expect_err("it cannot be best");
        ensure!(format!("{error:#}").contains(why), "{number}: {error:#}");
    }
    runbook.end()
}

/// A token of a user, by the command line.
fn add_token(site: &Site, words: &[&str]) -> anyhow::Result<NewToken> {
    Ok(serde_json::from_str(&site.command(words)?)?)
}

#[tokio::test]
async fn a_thief_of_a_token_is_shut_out() -> anyhow::Result<()> {
    let mut runbook = Runbook::section("A token is stolen")?;
    let site = Site::start(&tiny()).await?;
    let stolen = add_token(
        &site,
        &["user", "create", "ann", "--scope", "operate", "--json"],
    )?;
    let thief = site.client().with_token(&stolen.token);
    let pause = serde_json::json!({"status": "paused"});
    let paused = thief.json::<RunInfo>(Method::PATCH, "/runs/main", Some(&pause));
    assert_eq!(paused.await?.map(|run| run.status), Ok(RunStatus::Paused));
    let another = serde_json::json!({"machine": "another", "scopes": ["operate"]});
    let made = thief.json::<NewToken>(Method::POST, "/tokens", Some(&another));
    let second = made.await?.expect("a token that may operate makes others");
    let second = site.client().with_token(&second.token);

    let tokens = runbook.coordinator(&site, "user tokens", &[])?;
    let number_of = |is_second: bool| {
        let line = tokens
            .lines()
            .find(|line| line.contains("another") == is_second);
        let number = line.and_then(|line| line.split_whitespace().next());
        number.with_context(|| format!("two tokens: {tokens}"))
    };
    let (first, other) = (number_of(false)?, number_of(true)?);
    runbook.coordinator(&site, "user revoke", &[("7", first)])?;
    let works = async |client: &Client| {
        let answer = client.send(Method::GET, "/operator-log", "").await;
        answer.map(|answer| answer.status().is_success())
    };
    ensure!(!works(&thief).await?);
    ensure!(works(&second).await?, "it outlives the stolen one");

    let log = runbook.coordinator(&site, "log --actor ann", &[])?;
    ensure!(log.contains("change-run"), "{log}");
    ensure!(
        log.lines()
            .any(|line| line.contains("token") && line.contains(other)),
        "the log names the token {other}: {log}"
    );
    runbook.coordinator(&site, "user revoke", &[("8", other)])?;
    ensure!(!works(&second).await?);
    runbook.coordinator(&site, "run open", &[])?;
    assert_eq!(site.run().await?.status, RunStatus::Open);
    let token = runbook.coordinator(&site, "user add-token", &[])?;
    let token = token.lines().find(|line| line.starts_with("rk_"));
    let ann = site.client().with_token(token.context("it is printed")?);
    ensure!(works(&ann).await?);
    runbook.end()
}

#[tokio::test]
async fn a_leaked_key_is_followed_by_another() -> anyhow::Result<()> {
    let mut runbook = Runbook::section("A run's key is leaked")?;
    let mut site = Site::start(&tiny()).await?;
    site.command(&["run", "key", "create", RUN])?;
    let old = site.command(&["run", "key", "show", RUN])?;
    site.submit_random(1).await?;
    let worker = site.worker("ann")?;
    let pins = site.path("ann").join("keys.toml");
    let pinned = async |key: &str| {
        eventually("the worker trusts the key", async || {
            let text = std::fs::read_to_string(&pins).unwrap_or_default();
            Ok(text.contains(key.trim()).then_some(()))
        })
        .await
    };
    pinned(&old).await?;
    runbook.coordinator(&site, "run key rotate", &[])?;
    let new = runbook.coordinator(&site, "run key show", &[])?;
    ensure!(new != old);
    // What jobs say of the key may be a few seconds old; after a start it is not.
    site.kill_coordinator()?;
    site.start_coordinator().await?;
    pinned(&new).await?;
    let games = site.run().await?.games;
    eventually("the worker plays on", async || {
        Ok((site.run().await?.games > games).then_some(()))
    })
    .await?;
    worker.kill()?;
    ensure!(!std::fs::read_to_string(&pins)?.contains(old.trim()));
    runbook.end()
}
