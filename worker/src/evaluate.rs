//! The command `evaluate`: what a network thinks of a position, with or without search.

use std::process::ExitCode;
use std::sync::Arc;

use rookery_analysis::evaluate;
use rookery_backends::{NamedDevice, kernel_tuner};
use rookery_engine::{DeviceChoice, Precision, fastest};
use tokio::runtime::Runtime;

use crate::cli::EvaluateArgs;
use crate::config::{ConfigFile, or_auto, resolve_data_dir};
use crate::device_pool::DevicePool;
use crate::network_argument;
use crate::networks::Trial;

/// Answers the position of the flags, or those on standard input.
///
/// # Errors
///
/// If the network or the position cannot be used.
pub fn run(args: &EvaluateArgs, file: &ConfigFile, runtime: &Runtime) -> anyhow::Result<ExitCode> {
    let precision: Precision = args.precision.parse()?;
    let device: NamedDevice<DeviceChoice> = or_auto(&args.device, &file.device).parse()?;
    let device = device.with_access(&file.remote_access())?;
    let folder = resolve_data_dir(args.server.dir.clone(), file).ok();
    let backends = device.open(precision, &kernel_tuner(folder.as_deref()))?;
    let trial = Trial(DevicePool::single(Arc::clone(&backends[0])));
    let name = args.network.clone();
    let name = name.unwrap_or_else(|| network_argument::default_name(&args.server, file));
    let (weights, _) = network_argument::load(&name, &args.server, file, trial, runtime)?;
    let evaluator = fastest(backends, &weights)?.load(&weights)?.evaluator();
    evaluate::run(&args.question, &name, evaluator)
}
