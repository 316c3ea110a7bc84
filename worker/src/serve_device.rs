//! The command `serve-device`: this machine's device for other machines.

use std::net::TcpListener;

use anyhow::Context as _;
use rookery_backend_gpu::KernelTuner;
use rookery_backend_remote::{Server, ServerOptions};
use rookery_common::signals::StopSignals;
use rookery_common::text::quantity;
use tokio::runtime::Runtime;

use crate::cli::{ComputeArgs, ServeDeviceArgs};
use crate::config::{Compute, ConfigFile, resolve_data_dir};
use crate::device_argument::device_token;
use crate::machine::Machine;
use crate::tuning::Tuning;

/// Offers the device until a signal asks the program to end.
///
/// # Errors
///
/// If the device or the address cannot be used, or the address is open to other machines and there is no token.
pub fn run(args: ServeDeviceArgs, file: &ConfigFile, runtime: &Runtime) -> anyhow::Result<()> {
    let compute = ComputeArgs {
        device: args.device,
        precision: args.precision,
        threads: args.threads,
        ..ComputeArgs::default()
    };
    let options = ServerOptions {
        token: device_token(file)?,
        ..ServerOptions::default()
    };
    let listener = TcpListener::bind(args.listen);
    let listener =
        listener.with_context(|| format!("RK-0008: cannot listen at {}", args.listen))?;
    let mut compute = Compute::resolve(&compute, file)?;
    compute.pairs = false;
    let kernels = resolve_data_dir(None, file).map(|dir| Tuning::kernels_path(&dir));
    let kernels = kernels.map(KernelTuner::remembered).unwrap_or_default();
    let machine = Machine::open(&compute, &kernels, &mut Tuning::default(), None)?;
    anyhow::ensure!(
        machine.devices.lanes() == 1,
        "RK-0310: serve-device offers one device: start it once for each GPU, each with a --listen of its own"
    );
    let (backend, info) = (machine.devices.backend(0), machine.devices.info(0));
    let server = Server::start(listener, backend, machine.threads, options)?;
    let address = server.address();
    tracing::info!(
        "{} in {} is offered at {address}",
        info.device,
        info.precision
    );
    runtime.block_on(async {
        let mut signals = StopSignals::listen().context("signals cannot be listened to")?;
        signals.next().await;
        anyhow::Ok(())
    })?;
    let done = server.statistics();
    let positions = quantity(done.positions, "position");
    let batches = quantity(done.batches, "batch");
    tracing::info!("ending; evaluated {positions} in {batches}");
    Ok(())
}
