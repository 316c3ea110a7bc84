//! Which key the networks of a run must be signed with.
//!
//! The first key that a coordinator names for a run is pinned in `keys.toml`, beside the token, or
//! one is given with `--run-key`. From then on only that key counts, or a later one for which it
//! vouches: a coordinator, or an impostor in its place, cannot hand out other networks.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use rookery_common::files::if_found;
use rookery_common::ids::RunName;
use rookery_common::signing::{RunKey, SigningError, successor};
use tokio::sync::Mutex;

use crate::api::{ApiError, Client};
use crate::config::write_private;

/// Keys by coordinator and run.
type Pins = BTreeMap<String, BTreeMap<String, RunKey>>;

/// The keys that are trusted.
#[derive(Debug)]
pub struct Trust {
    path: PathBuf,
    given: Option<RunKey>,
    pins: Mutex<Pins>,
}

/// Why a run's networks are not trusted.
#[derive(Debug, thiserror::Error)]
pub enum TrustError {
    /// The run's keys could not be fetched.
    #[error("the keys of run {run} could not be fetched: {error}")]
    Api {
        /// The run.
        run: RunName,
        /// What the coordinator says.
        error: ApiError,
    },
    /// The job was made before the run's key was followed by another.
    #[error("RK-0416: the job of run {run} is signed with a key that was followed by another")]
    Superseded {
        /// The run.
        run: RunName,
    },
    /// The coordinator names another key, or none.
    #[error(
        "RK-0410: run {run} must be signed by the key {trusted}, but the coordinator names {offered}: {reason}. Either its \
         operator lost the key, or another server answers in its place; ask the operator, and if the \
         new key is right, start once with --run-key KEY (keys are kept in {path})",
        path = path.display()
    )]
    Other {
        /// The run.
        run: RunName,
        /// The key that is trusted.
        trusted: RunKey,
        /// What the coordinator names.
        offered: String,
        /// Why that does not follow.
        reason: String,
        /// Where keys are pinned.
        path: PathBuf,
    },
    /// The keys could not be kept.
    #[error("{0:#}")]
    File(anyhow::Error),
}

impl TrustError {
    /// Whether another job, or the same later, may do better.
    pub const fn may_pass(&self) -> bool {
        !matches!(self, Self::Other { .. })
    }
}

impl Trust {
    /// The keys that were pinned in this folder, and the one that was given, if one was.
    ///
    /// # Errors
    ///
    /// If the file of keys cannot be read.
    pub fn open(folder: &Path, given: Option<RunKey>) -> anyhow::Result<Self> {
        let path = folder.join("keys.toml");
        let text = if_found(std::fs::read_to_string(&path))
            .with_context(|| format!("cannot read {}", path.display()))?;
        let pins = match text {
            Some(text) => toml::from_str(&text).with_context(|| {
                format!(
                    "RK-0409: the file of keys {} is damaged; move it away, and the key that the coordinator names next \
                 is trusted, or the one that you give with --run-key",
                    path.display()
                )
            })?,
            None => Pins::default(),
        };
        Ok(Self {
            path,
            given,
            pins: Mutex::new(pins),
        })
    }

    /// The key with which networks of the run must be signed; none if the run has none and never
    /// had one here. `offered` is what the coordinator names.
    ///
    /// # Errors
    ///
    /// [`TrustError`] if it is not the one that is trusted, nor follows it.
    pub async fn key(
        &self,
        client: &Client,
        run: &RunName,
        offered: Option<&RunKey>,
    ) -> Result<Option<RunKey>, TrustError> {
        let server = client.server().to_string();
        let mut pins = self.pins.lock().await;
        let known = pins.get(&server).and_then(|runs| runs.get(run.as_str()));
        let pinned = known.cloned();
        let key = match (self.given.as_ref().or(pinned.as_ref()), offered) {
            (None, None) => return Ok(None),
            (None, Some(first)) => {
                tracing::info!(
                    "run {run} signs its networks with {first}; from now on no others are taken"
                );
                first.clone()
            }
            (Some(trusted), Some(offered)) if trusted == offered => offered.clone(),
            (Some(trusted), offered) => self.follow(client, run, trusted, offered).await?,
        };
        if pinned.as_ref() != Some(&key) {
            let runs = pins.entry(server).or_default();
            runs.insert(run.to_string(), key.clone());
            self.keep(&pins).map_err(TrustError::File)?;
        }
        Ok(Some(key))
    }

    fn keep(&self, pins: &Pins) -> anyhow::Result<()> {
        write_private(&self.path, &toml::to_string(pins)?)
    }

    /// The key that was offered, if the trusted one endorses it.
    async fn follow(
        &self,
        client: &Client,
        run: &RunName,
        trusted: &RunKey,
        offered: Option<&RunKey>,
    ) -> Result<RunKey, TrustError> {
        let history = client
            .run_keys(run)
            .await
            .map_err(|error| TrustError::Api {
                run: run.clone(),
                error,
            })?;
        let newest = successor(trusted, run, &history);
        let reason = match (newest, offered) {
            (Ok(newest), Some(offered)) if newest == *offered => {
                tracing::info!("run {run} signs with {newest} now, which the key before endorses");
                return Ok(newest);
            }
            (Ok(_), Some(offered)) if history.iter().any(|info| info.key == *offered) => {
                return Err(TrustError::Superseded { run: run.clone() });
            }
            (Ok(newest), _) => format!("its newest key is {newest}"),
            (Err(SigningError::History { reason, .. }), _) => reason.to_owned(),
            (Err(error), _) => error.to_string(),
        };
        Err(TrustError::Other {
            run: run.clone(),
            trusted: trusted.clone(),
            offered: offered.map_or_else(|| "none".to_owned(), ToString::to_string),
            reason,
            path: self.path.clone(),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use rookery_client::testing::{Answer, Server};
    use rookery_common::signing::{RunKeyInfo, SigningKey};

    use super::*;

    fn run() -> RunName {
        "main".parse().unwrap()
    }

    fn make() -> SigningKey {
        SigningKey::generate().unwrap()
    }

    fn history(keys: &[&SigningKey]) -> Vec<RunKeyInfo> {
        let before = std::iter::once(None).chain(keys.iter().map(Some));
        keys.iter()
            .zip(before)
            .map(|(key, before)| RunKeyInfo {
                key: key.public().clone(),
                endorsement: before.map(|by| by.endorse(&run(), key.public()).unwrap()),
                since: String::new(),
            })
            .collect()
    }

    /// A coordinator that tells this history of its run's keys, at one address for a whole test.
    struct Coordinator {
        client: Client,
        told: Arc<Mutex<Vec<RunKeyInfo>>>,
    }

    impl Coordinator {
        async fn start() -> Self {
            let told = Arc::<Mutex<Vec<RunKeyInfo>>>::default();
            let answers = Arc::clone(&told);
            let server = Server::start(move |request| {
                assert_eq!(request.call(), "GET runs/main/keys");
                Answer::json(&*answers.lock().unwrap())
            });
            let client = Client::new(server.await.url.parse().unwrap()).unwrap();
            Self { client, told }
        }

        fn tell(&self, history: Vec<RunKeyInfo>) {
            *self.told.lock().unwrap() = history;
        }
    }

    async fn ask(
        folder: &Path,
        given: Option<&SigningKey>,
        server: &Coordinator,
        offered: Option<&SigningKey>,
    ) -> Result<Option<RunKey>, TrustError> {
        let given = given.map(|key| key.public().clone());
        let trust = Trust::open(folder, given).unwrap();
        let offered = offered.map(SigningKey::public);
        trust.key(&server.client, &run(), offered).await
    }

    #[tokio::test]
    async fn the_first_key_is_pinned_and_another_or_none_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        let (server, key, thief) = (Coordinator::start().await, make(), make());
        assert_eq!(ask(folder, None, &server, None).await.unwrap(), None);
        let pinned = ask(folder, None, &server, Some(&key)).await.unwrap();
        assert_eq!(pinned.as_ref(), Some(key.public()));
        server.tell(history(&[&key]));
        assert_eq!(
            ask(folder, None, &server, Some(&key)).await.unwrap(),
            pinned
        );
        // An impostor cannot make the endorsement.
        let mut usurped = history(&[&key, &thief]);
        usurped[1].endorsement = history(&[&thief, &thief])[1].endorsement.clone();
        for told in [history(&[&key]), history(&[&thief]), usurped, Vec::new()] {
            server.tell(told);
            for offered in [Some(&thief), None] {
                let error = ask(folder, None, &server, offered).await.unwrap_err();
                assert!(!error.may_pass(), "{error}");
                let text = error.to_string();
                assert!(text.contains("--run-key") && text.contains(key.public().as_str()));
            }
        }
        // Another coordinator's run of the same name is another run.
        let other = Coordinator::start().await;
        let pinned = ask(folder, None, &other, Some(&thief)).await.unwrap();
        assert_eq!(pinned.as_ref(), Some(thief.public()));
    }

    #[test]
    fn a_damaged_file_of_keys_is_named_with_what_to_do() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("keys.toml"), [0; 100]).unwrap();
        let error = format!("{:#}", Trust::open(folder.path(), None).unwrap_err());
        assert!(
            error.contains("keys.toml") && error.contains("--run-key"),
            "{error}"
        );
    }

    #[tokio::test]
    async fn an_endorsed_key_is_followed_and_never_back() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        let (server, first, second) = (Coordinator::start().await, make(), make());
        ask(folder, None, &server, Some(&first)).await.unwrap();
        server.tell(history(&[&first, &second]));
        let followed = ask(folder, None, &server, Some(&second)).await.unwrap();
        assert_eq!(followed.as_ref(), Some(second.public()));
        // Jobs of the key before were handed out a moment ago, or somebody has stolen it.
        let error = ask(folder, None, &server, Some(&first)).await.unwrap_err();
        assert!(error.may_pass(), "{error}");
    }

    #[tokio::test]
    async fn a_key_that_was_given_wins_over_the_pinned_one() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        let (server, lost, new) = (Coordinator::start().await, make(), make());
        ask(folder, None, &server, Some(&lost)).await.unwrap();
        server.tell(history(&[&new]));
        assert!(ask(folder, None, &server, Some(&new)).await.is_err());
        assert!(ask(folder, Some(&new), &server, Some(&lost)).await.is_err());
        ask(folder, Some(&new), &server, Some(&new)).await.unwrap();
        let kept = ask(folder, None, &server, Some(&new)).await.unwrap();
        assert_eq!(kept.as_ref(), Some(new.public()));
        // It is asked for from the first contact on.
        let fresh = tempfile::tempdir().unwrap();
        let refused = ask(fresh.path(), Some(&lost), &server, Some(&new)).await;
        assert!(refused.is_err());
        assert!(ask(fresh.path(), Some(&lost), &server, None).await.is_err());
    }
}
