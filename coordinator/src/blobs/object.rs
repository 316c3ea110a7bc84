//! Blobs in an object store: S3 and what speaks like it, Google Cloud Storage, Azure.
//!
//! A blob is one object under the same key as in a folder. Credentials, region, endpoint and
//! timeouts come from the environment (`AWS_…`, `GOOGLE_…`, `AZURE_…`), as `object_store` reads
//! them. S3 checks the SHA-256 that an upload is signed with before it answers; of other stores
//! the size is asked for before an upload counts.

use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::TryStreamExt as _;
use jiff::Timestamp;
use object_store::aws::{AmazonS3Builder, Checksum};
use object_store::azure::MicrosoftAzureBuilder;
use object_store::gcp::GoogleCloudStorageBuilder;
use object_store::path::Path;
use object_store::signer::{Method, Signer};
use object_store::{
    Attribute, Attributes, BackoffConfig, GetOptions, ObjectMeta, ObjectStore, ObjectStoreExt as _,
    PutMode, PutOptions, RetryConfig,
};
use parking_lot::Mutex;
use rookery_common::ids::ContentHash;

use super::{BlobEntry, BlobError, BlobKind, BlobStore, ByteStream, Downloads, MARK, Marking, key};

/// How long a signed address may be used to begin a download.
const SIGNED: Duration = Duration::from_secs(60 * 60);
/// How often a ping writes; between, it only asks for what it wrote.
const WRITE_EVERY: Duration = Duration::from_secs(10 * 60);
/// What may be told to caches of a file that never changes.
const CACHING: &str = "public, max-age=31536000, immutable";

#[derive(Debug)]
pub struct ObjectBlobs {
    store: Arc<dyn ObjectStore>,
    signer: Arc<dyn Signer>,
    prefix: Path,
    downloads: Downloads,
    /// Whether the store itself compares what came with a checksum.
    checks: bool,
    /// When a ping last wrote.
    written: Mutex<Option<Instant>>,
}

/// A builder with those settings whose names it knows; the names begin with `$prefix`.
macro_rules! configured {
    ($builder:ty, $prefix:literal, $settings:ident) => {
        $settings
            .into_iter()
            .filter(|(name, _)| name.starts_with($prefix))
            .fold(<$builder>::new(), |builder, (name, value)| {
                match name.to_ascii_lowercase().parse() {
                    Ok(key) => builder.with_config(key, value),
                    Err(_) => builder,
                }
            })
    };
}

/// A store by one of the builders.
fn parts<S: ObjectStore + Signer>(store: S) -> (Arc<dyn ObjectStore>, Arc<dyn Signer>) {
    let store = Arc::new(store);
    (store.clone(), store)
}

/// Tries again a few times, but answers before a client's patience ends.
fn retries() -> RetryConfig {
    RetryConfig {
        backoff: BackoffConfig {
            max_backoff: Duration::from_secs(2),
            ..BackoffConfig::default()
        },
        max_retries: 4,
        retry_timeout: Duration::from_secs(20),
    }
}

impl ObjectBlobs {
    /// Opens the store at `url`: `s3://BUCKET/PREFIX`, `gs://BUCKET/PREFIX` or
    /// `az://CONTAINER/PREFIX`, with settings by the names that they have in the environment.
    /// Nothing is sent yet.
    pub fn open(
        url: &str,
        settings: impl IntoIterator<Item = (String, String)>,
        downloads: Downloads,
    ) -> Result<Self, BlobError> {
        let unusable = |error: object_store::Error| {
            BlobError::Address(format!("the store {url} cannot be used: {error}"))
        };
        let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
        let prefix = rest.split_once('/').map_or("", |(_, prefix)| prefix);
        let prefix = Path::parse(prefix.trim_end_matches('/'))
            .map_err(|error| BlobError::Address(format!("{url}: {error}")))?;
        let (store, signer) = match scheme {
            "s3" | "s3a" => configured!(AmazonS3Builder, "AWS_", settings)
                .with_url(url)
                .with_retry(retries())
                .with_checksum_algorithm(Checksum::SHA256)
                .build()
                .map(parts),
            "gs" => configured!(GoogleCloudStorageBuilder, "GOOGLE_", settings)
                .with_url(url)
                .with_retry(retries())
                .build()
                .map(parts),
            "az" | "azure" | "abfs" | "abfss" => {
                configured!(MicrosoftAzureBuilder, "AZURE_", settings)
                    .with_url(url)
                    .with_retry(retries())
                    .build()
                    .map(parts)
            }
            other => {
                return Err(BlobError::Address(format!(
                    "{other}:// is no store that this build knows; give a folder, file://, \
                     s3://, gs:// or az://"
                )));
            }
        }
        .map_err(unusable)?;
        Ok(Self {
            store,
            signer,
            prefix,
            downloads,
            checks: scheme.starts_with("s3"),
            written: Mutex::new(None),
        })
    }

    fn path(&self, kind: BlobKind, hash: &ContentHash) -> Path {
        self.at(&key(kind, hash))
    }

    fn at(&self, key: &str) -> Path {
        self.prefix.parts().chain(Path::from(key).parts()).collect()
    }

    fn wrote_lately(&self) -> bool {
        let written = *self.written.lock();
        written.is_some_and(|at| at.elapsed() < WRITE_EVERY)
    }

    async fn write(&self, path: &Path, bytes: Bytes) -> object_store::Result<()> {
        let mut attributes = Attributes::new();
        attributes.insert(Attribute::CacheControl, CACHING.into());
        attributes.insert(Attribute::ContentType, "application/octet-stream".into());
        let options = PutOptions {
            attributes,
            ..PutOptions::default()
        };
        let size = bytes.len() as u64;
        self.store.put_opts(path, bytes.into(), options).await?;
        if self.checks {
            return Ok(());
        }
        let stored = self.store.head(path).await?.size;
        if stored == size {
            return Ok(());
        }
        let source = format!("{stored} of {size} bytes arrived").into();
        let store = "blobs";
        Err(object_store::Error::Generic { store, source })
    }
}

fn entry(hash: ContentHash, object: &ObjectMeta) -> Result<BlobEntry, BlobError> {
    let modified = Timestamp::from_millisecond(object.last_modified.timestamp_millis());
    let modified = modified.map_err(|error| BlobError::Io {
        tried: format!("cannot read the time of {}", object.location),
        source: io::Error::other(error),
    })?;
    Ok(BlobEntry {
        hash,
        bytes: object.size,
        modified,
    })
}

fn to_io(error: object_store::Error) -> io::Error {
    match error {
        object_store::Error::NotFound { .. } => io::Error::new(io::ErrorKind::NotFound, error),
        other => match no_credentials(&other) {
            Some(reason) => io::Error::other(reason),
            None => io::Error::other(other),
        },
    }
}

/// What to do where no credentials are set: the machine was asked for its role's, and had none.
fn no_credentials(error: &object_store::Error) -> Option<&'static str> {
    let said = error.to_string();
    let services = [
        (
            "169.254.169.254/latest/",
            "there is no AWS_ACCESS_KEY_ID, and no instance role answers; set AWS_ACCESS_KEY_ID and \
             AWS_SECRET_ACCESS_KEY",
        ),
        (
            "computeMetadata",
            "there is no GOOGLE_SERVICE_ACCOUNT, and no instance's service account answers; set \
             GOOGLE_SERVICE_ACCOUNT to the path of a key file",
        ),
        (
            "metadata/identity",
            "there is no AZURE_STORAGE_ACCOUNT_KEY, and no managed identity answers; set \
             AZURE_STORAGE_ACCOUNT_KEY",
        ),
    ];
    let asked = services.into_iter().find(|(place, _)| said.contains(place));
    asked.map(|(_, reason)| reason)
}

/// An error of what was tried with an object.
fn failed(tried: &'static str, path: &Path) -> impl FnOnce(object_store::Error) -> BlobError {
    let name = path.to_string();
    move |error| match error {
        object_store::Error::NotFound { .. } => BlobError::Missing(name),
        other => BlobError::Io {
            tried: format!("{tried} {name}"),
            source: to_io(other),
        },
    }
}

#[async_trait]
impl BlobStore for ObjectBlobs {
    async fn put(&self, kind: BlobKind, hash: &ContentHash, bytes: Bytes) -> Result<(), BlobError> {
        let path = self.path(kind, hash);
        self.write(&path, bytes)
            .await
            .map_err(|error| BlobError::Io {
                tried: format!("cannot write {path}"),
                source: to_io(error),
            })
    }

    async fn get(&self, kind: BlobKind, hash: &ContentHash) -> Result<Bytes, BlobError> {
        let path = self.path(kind, hash);
        let get = async { self.store.get(&path).await?.bytes().await };
        get.await.map_err(failed("cannot read", &path))
    }

    async fn entry(&self, kind: BlobKind, hash: &ContentHash) -> Result<BlobEntry, BlobError> {
        let path = self.path(kind, hash);
        let head = self.store.head(&path).await;
        let head = head.map_err(failed("cannot find", &path))?;
        entry(*hash, &head)
    }

    async fn list(&self, kind: BlobKind) -> Result<Vec<BlobEntry>, BlobError> {
        let folder = self.at(kind.folder());
        let mut objects = self.store.list(Some(&folder));
        let mut entries = Vec::new();
        while let Some(object) = objects
            .try_next()
            .await
            .map_err(failed("cannot list", &folder))?
        {
            let name = object.location.filename().unwrap_or_default();
            // Objects with other names are not the store's.
            if let Ok(hash) = name.parse() {
                entries.push(entry(hash, &object)?);
            }
        }
        Ok(entries)
    }

    async fn remove(&self, kind: BlobKind, hash: &ContentHash) -> Result<(), BlobError> {
        let path = self.path(kind, hash);
        match self.store.delete(&path).await {
            Err(object_store::Error::NotFound { .. }) | Ok(()) => Ok(()),
            Err(error) => Err(failed("cannot remove", &path)(error)),
        }
    }

    async fn read(
        &self,
        kind: BlobKind,
        hash: &ContentHash,
        range: Range<u64>,
    ) -> Result<ByteStream, BlobError> {
        if range.is_empty() {
            return Ok(Box::pin(futures_util::stream::empty()));
        }
        let path = self.path(kind, hash);
        let options = GetOptions::new().with_range(Some(range));
        let got = self.store.get_opts(&path, options).await;
        let got = got.map_err(failed("cannot read", &path))?;
        Ok(Box::pin(got.into_stream().map_err(to_io)))
    }

    async fn address(
        &self,
        kind: BlobKind,
        hash: &ContentHash,
    ) -> Result<Option<String>, BlobError> {
        if let Some(address) = self.downloads.public_address(kind, hash) {
            return Ok(Some(address));
        }
        if !self.downloads.direct {
            return Ok(None);
        }
        let path = self.path(kind, hash);
        let signed = self.signer.signed_url(Method::GET, &path, SIGNED).await;
        let signed = signed.map_err(failed("cannot sign an address of", &path))?;
        Ok(Some(signed.into()))
    }

    async fn mark(&self) -> Result<Option<Bytes>, BlobError> {
        let path = self.at(MARK);
        let get = async { self.store.get(&path).await?.bytes().await };
        match get.await {
            Ok(text) => Ok(Some(text)),
            Err(object_store::Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(failed("cannot read", &path)(error)),
        }
    }

    async fn set_mark(&self, text: Bytes, marking: Marking) -> Result<(), BlobError> {
        let path = self.at(MARK);
        let mode = match marking {
            Marking::First => PutMode::Create,
            Marking::Over => PutMode::Overwrite,
        };
        let put = self.store.put_opts(&path, text.clone().into(), mode.into());
        let put = match put.await {
            // The environment says that the store knows no conditions.
            Err(object_store::Error::NotImplemented { .. }) => {
                self.store.put(&path, text.into()).await
            }
            put => put,
        };
        match put {
            Ok(_) | Err(object_store::Error::AlreadyExists { .. }) => Ok(()),
            Err(error) => Err(BlobError::Io {
                tried: format!("cannot write {path}"),
                source: to_io(error),
            }),
        }
    }

    async fn ping(&self) -> Result<(), BlobError> {
        let path = self.at("ping");
        if self.wrote_lately() {
            match self.store.head(&path).await {
                // Somebody removed it.
                Err(object_store::Error::NotFound { .. }) => {}
                found => return found.map(drop).map_err(failed("cannot find", &path)),
            }
        }
        let write = self.write(&path, Bytes::from_static(b"ping\n")).await;
        write.map_err(|error| BlobError::Io {
            tried: format!("cannot write {path}"),
            source: to_io(error),
        })?;
        *self.written.lock() = Some(Instant::now());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AZURE: [(&str, &str); 2] = [
        ("AZURE_STORAGE_ACCOUNT_NAME", "account"),
        ("AZURE_STORAGE_ACCOUNT_KEY", "c2VjcmV0"),
    ];

    fn open(url: &str, settings: &[(&str, &str)]) -> Result<ObjectBlobs, BlobError> {
        let settings = settings
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let downloads = Downloads {
            public: None,
            direct: true,
        };
        ObjectBlobs::open(url, settings, downloads)
    }

    #[test]
    fn every_kind_of_url_names_a_store_and_what_is_put_before_its_keys() {
        let hash = ContentHash::of(b"network");
        let plain = key(BlobKind::Network, &hash);
        for (url, settings, store, before) in [
            ("s3://bucket/a/b", &[][..], "AmazonS3(bucket)", "a/b/"),
            ("gs://bucket", &[][..], "GoogleCloudStorage(bucket)", ""),
            (
                "gs://bucket/a/b/",
                &[][..],
                "GoogleCloudStorage(bucket)",
                "a/b/",
            ),
            (
                "az://bucket/a",
                &AZURE[..],
                "MicrosoftAzure { account: account, container: bucket }",
                "a/",
            ),
        ] {
            let blobs = open(url, settings).unwrap();
            assert_eq!(blobs.store.to_string(), store, "{url}");
            let path = blobs.path(BlobKind::Network, &hash).to_string();
            assert_eq!(path, format!("{before}{plain}"), "{url}");
        }
    }

    #[test]
    fn missing_credentials_are_named_and_not_the_address_that_was_asked() {
        let failed = |url: &str| {
            let source = format!("Error performing PUT {url} in 4s, after 4 retries");
            let store = "S3";
            let source = source.into();
            to_io(object_store::Error::Generic { store, source }).to_string()
        };
        for (url, missing) in [
            (
                "http://169.254.169.254/latest/api/token",
                "AWS_ACCESS_KEY_ID",
            ),
            (
                "http://metadata.google.internal/computeMetadata/v1/instance/x",
                "GOOGLE_SERVICE_ACCOUNT",
            ),
            (
                "http://169.254.169.254/metadata/identity/oauth2/token",
                "AZURE_STORAGE_ACCOUNT_KEY",
            ),
        ] {
            let said = failed(url);
            assert!(
                said.starts_with(&format!("there is no {missing}, and no")),
                "{said}"
            );
        }
        let said = failed("https://bucket.s3.amazonaws.com/x");
        assert!(said.contains("bucket.s3"), "{said}");
    }

    #[tokio::test]
    async fn the_environments_settings_reach_the_stores() {
        let key_file = [("GOOGLE_SERVICE_ACCOUNT", "/nowhere/key.json")];
        let refused = open("gs://bucket", &key_file).unwrap_err().to_string();
        assert!(refused.contains("gs://bucket"), "{refused}");
        assert!(refused.contains("/nowhere/key.json"), "{refused}");
        let refused = open("az://bucket", &[]).unwrap_err().to_string();
        assert!(refused.contains("az://bucket"), "{refused}");
        // Signed with the account's key, without a word to anybody.
        let hash = ContentHash::of(b"network");
        let blobs = open("az://bucket/a", &AZURE).unwrap();
        let address = blobs.address(BlobKind::Network, &hash).await.unwrap();
        let address = address.unwrap();
        let named = "https://account.blob.core.windows.net/bucket/a/networks/";
        assert!(address.starts_with(named), "{address}");
        assert!(address.contains("sig="), "{address}");
    }
}
