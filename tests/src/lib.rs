//! What the end-to-end tests share: the real programs as processes, a client of the API, and an
//! honest player that needs no network.
//!
//! - [`programs`]: starts, watches and kills the real programs, each in a folder of its own;
//! - [`site`]: a coordinator with a run and users, ready for tests;
//! - [`client`]: the API as a test calls it;
//! - [`clock`]: a program's clock, which a test sets forward and back;
//! - [`audit_scenario`]: a coordinator whose contributors are audited, in rounds;
//! - [`liars`]: contributors who lie, and honest ones with other numbers;
//! - [`disk`]: a disk that a test fills up or makes read-only;
//! - [`netns`]: a machine of its own, whose network cables a test pulls out;
//! - [`s3_fault`]: what an S3 server does wrong;
//! - [`network`]: network files that are not evaluated;
//! - [`params`]: runs that finish within a test;
//! - [`postgres`]: a PostgreSQL server that a test kills and starts again;
//! - [`proxy`]: a way between two programs that a test cuts;
//! - [`s3`]: an S3 server that a test kills and starts again, or lets fail;
//! - [`s3_server`]: how it serves a folder, for a test's own process, too;
//! - [`stores`]: what a site keeps its ledger and files in, and tests on each kind of it;
//! - [`player`]: plays a job with a uniform evaluator and makes the chunk.

pub mod audit_scenario;
pub mod client;
pub mod clock;
pub mod disk;
pub mod liars;
pub mod netns;
pub mod network;
pub mod params;
pub mod player;
pub mod postgres;
pub mod programs;
pub mod proxy;
pub mod s3;
pub mod s3_fault;
pub mod s3_server;
pub mod site;
pub mod stores;
