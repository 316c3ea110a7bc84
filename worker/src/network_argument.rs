//! Networks as command lines name them: a file, a shape, or a name that the coordinator knows.

use std::path::Path;
use std::time::Duration;

use anyhow::Context as _;
use rookery_common::network::NetworkSpec;
use rookery_common::protocol::ProblemCode;
use rookery_common::protocol::jobs::NetworkRef;
use rookery_common::protocol::networks::{NetworkInfo, NetworkName};
use rookery_model::{NetworkFile, Weights, included};
use tokio::runtime::Runtime;
use tokio::time::timeout;

use crate::api::Client;
use crate::cli::ServerArgs;
use crate::config::ConfigFile;
use crate::networks::{NetworkCache, Trial};
use crate::trust::Trust;

/// How long a question about the best network may take: a game waits for it.
const QUESTION: Duration = Duration::from_secs(5);

/// Loads the network that `name` names: an existing file, ours or Lc0's, `small` (comes with Rookery), a shape
/// such as `6x64` (random weights), or a number, `best` or a SHA-256 on the coordinator. Gives its weights and
/// how to call it.
///
/// # Errors
///
/// If there is no such network, or it cannot be used.
pub fn load(
    name: &str,
    server: &ServerArgs,
    file: &ConfigFile,
    trial: Trial,
    runtime: &Runtime,
) -> anyhow::Result<(Weights, String)> {
    let path = Path::new(name);
    if path.is_file() {
        return read(path).with_context(|| format!("RK-0601: cannot read the network {name}"));
    }
    if name == included::NAME {
        let about = format!("{} that comes with Rookery", included::NAME);
        return Ok((included::weights()?, about));
    }
    if name.contains('x') && !name.contains(['/', '.']) {
        let spec = NetworkSpec::from_shape(name)?;
        return Ok((Weights::random(spec, 0)?, name.to_owned()));
    }
    let named = name.parse::<NetworkName>().ok();
    let named = named.with_context(|| {
        format!(
            "RK-0602: there is no network file {name:?}{}; write a file, `small` for the network that comes with Rookery, a shape such as 6x64, or a number, `best` or a SHA-256 with --server",
            if path.is_dir() { ", it is a folder" } else { "" }
        )
    })?;
    runtime.block_on(fetch(named, server, file, trial))
}

/// The network where none is named: the best one of the coordinator, if there is one, else the one that comes with Rookery.
pub fn default_name(server: &ServerArgs, file: &ConfigFile) -> String {
    let has_coordinator = server.server.is_some() || file.server.is_some();
    let name = if has_coordinator {
        "best"
    } else {
        included::NAME
    };
    name.to_owned()
}

/// How [`load`] would call the network now, where another may have become what `name` names; none where it always names the same.
///
/// # Errors
///
/// If the coordinator does not say.
pub fn ask_again(
    name: &str,
    server: &ServerArgs,
    file: &ConfigFile,
    runtime: &Runtime,
) -> anyhow::Result<Option<String>> {
    if Path::new(name).is_file() || !matches!(name.parse(), Ok(NetworkName::Best)) {
        return Ok(None);
    }
    let (address, _) = server.resolve(file)?;
    let client = Client::new(address)?;
    let answer = runtime.block_on(async {
        timeout(QUESTION, find(NetworkName::Best, server, file, &client)).await
    });
    let info = answer.with_context(|| format!("{} does not answer", client.server()))??;
    Ok(Some(about(&info)))
}

fn read(path: &Path) -> rookery_model::error::Result<(Weights, String)> {
    Ok(match NetworkFile::read(path)? {
        NetworkFile::Lc0(weights) => {
            let about = format!("{} of Lc0", weights.spec().shape());
            (weights, about)
        }
        NetworkFile::Rookery(verified, weights) => {
            let about = format!("{} ({})", verified.spec.shape(), verified.hash.short());
            (weights, about)
        }
    })
}

async fn fetch(
    name: NetworkName,
    server: &ServerArgs,
    file: &ConfigFile,
    trial: Trial,
) -> anyhow::Result<(Weights, String)> {
    let (address, folder) = server.resolve(file)?;
    let client = Client::new(address)?;
    let info = find(name, server, file, &client).await?;
    let runs = client.runs().await?;
    let offered = runs.into_iter().find(|run| run.name == info.run);
    let offered = offered.and_then(|run| run.key);
    let trust = Trust::open(&folder, None)?;
    let key = trust.key(&client, &info.run, offered.as_ref()).await?;
    let signature = match &key {
        Some(_) => Some(client.network_signature(info.hash, &info.run).await?),
        None => None,
    };
    let network = NetworkRef {
        hash: info.hash,
        number: info.number,
        bytes: info.bytes,
        signature,
    };
    let cache = NetworkCache::open(folder.join("networks"), trial)?;
    let found = cache.get(&client, &network, key.as_ref()).await?;
    let (_, weights) = Weights::read(&found.path)?;
    Ok((weights, about(&info)))
}

/// What the coordinator knows of the network.
async fn find(
    name: NetworkName,
    server: &ServerArgs,
    file: &ConfigFile,
    client: &Client,
) -> anyhow::Result<NetworkInfo> {
    let run = server
        .run
        .as_deref()
        .or(file.run.as_deref())
        .map(str::parse)
        .transpose()?;
    let found = client.network(name, run.as_ref()).await;
    found.map_err(|error| {
        let which = run.is_none() && error.code() == Some(ProblemCode::BadRequest);
        let help = if which {
            "; name the run with --run"
        } else {
            ""
        };
        let server = client.server();
        anyhow::Error::new(error).context(format!(
            "RK-0603: network {name} was not found on {server}{help}"
        ))
    })
}

fn about(info: &NetworkInfo) -> String {
    format!("{} #{} {}", info.run, info.number, info.spec.shape())
}

#[cfg(test)]
mod tests {
    use rookery_model::lc0;

    use super::*;

    #[test]
    fn files_of_lc0_are_read_whatever_they_are_called() {
        let dir = tempfile::tempdir().unwrap();
        let spec = NetworkSpec::resnet(1, 8);
        let weights = Weights::random(spec.clone(), 1).unwrap();
        let path = dir.path().join("0123abcd");
        std::fs::write(&path, lc0::to_bytes(&weights).unwrap()).unwrap();
        let (read_weights, about) = read(&path).unwrap();
        assert_eq!(read_weights.spec(), &spec);
        assert_eq!(about, "1x8 of Lc0");
        weights.write(&path).unwrap();
        let (_, about) = read(&path).unwrap();
        assert!(
            about.starts_with("1x8 (") && about.ends_with(')'),
            "{about}"
        );
        std::fs::write(&path, [0x1f, 0x8b, 0, 0, 0, 0]).unwrap();
        let error = read(&path).unwrap_err().to_string();
        assert!(error.contains("Lc0"), "{error}");
    }
}
