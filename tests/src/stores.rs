//! What a site keeps its ledger and its files in, and tests that are run on each kind of it.

use std::path::Path;

use crate::postgres::Postgres;
use crate::s3::S3;
use crate::site::SiteOptions;

/// A kind of stores.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stores {
    /// SQLite and a folder.
    Files,
    /// PostgreSQL and S3.
    Servers,
}

impl Stores {
    /// The servers that it needs, if any.
    ///
    /// # Errors
    ///
    /// If one does not start.
    pub fn start(self) -> anyhow::Result<Option<Servers>> {
        match self {
            Self::Files => Ok(None),
            Self::Servers => Ok(Some(Servers::start(None)?)),
        }
    }
}

/// A PostgreSQL and an S3 server.
#[derive(Debug)]
pub struct Servers {
    /// Keeps the ledger.
    pub postgres: Postgres,
    /// Keeps the files.
    pub s3: S3,
}

impl Servers {
    /// Starts both. Their files lie in `folder`, or in the system's temporary one.
    ///
    /// # Errors
    ///
    /// If one does not start.
    pub fn start(folder: Option<&Path>) -> anyhow::Result<Self> {
        Ok(Self {
            postgres: Postgres::start(folder)?,
            s3: S3::start(folder)?,
        })
    }

    /// The settings that a coordinator gets for them.
    pub fn options(&self) -> SiteOptions {
        let arguments = ["--database", &self.postgres.url(), "--store", &S3::url()];
        SiteOptions {
            arguments: arguments.map(str::to_owned).to_vec(),
            environment: self.s3.environment(),
            folder: None,
        }
    }
}

/// Runs functions as tests on each kind of [`Stores`]: each is given it, and may fail.
#[macro_export]
macro_rules! on_all_stores {
    (@on $module:ident $stores:ident $($test:ident)+) => {
        mod $module {
            $(
                #[tokio::test]
                async fn $test() -> anyhow::Result<()> {
                    super::$test($crate::stores::Stores::$stores).await
                }
            )+
        }
    };
    ($($test:ident),+ $(,)?) => {
        $crate::on_all_stores!(@on on_files Files $($test)+);
        $crate::on_all_stores!(@on on_servers Servers $($test)+);
    };
}
