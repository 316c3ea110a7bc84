//! The command `serve-device`: this machine's device for other machines.

use std::net::TcpListener;

use anyhow::Context as _;
use rookery_backend_remote::{Server, ServerOptions};
use rookery_backends::kernel_tuner;
use rookery_common::signals::{StopSignal, StopSignals};
use rookery_common::text::quantity;
use rookery_tls::ServerCertificate;
use tokio::runtime::Runtime;

use crate::cli::{ComputeArgs, ServeDeviceArgs};
use crate::config::{Compute, ConfigFile, resolve_data_dir};
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
    let certificate =
        ServerCertificate::of_flags(args.tls_cert.as_deref(), args.tls_key.as_deref(), &[])?;
    let options = ServerOptions {
        token: file.remote_access().token()?,
        certificate: certificate.clone(),
        ..ServerOptions::default()
    };
    let listener = TcpListener::bind(args.listen);
    let listener =
        listener.with_context(|| format!("RK-0008: cannot listen at {}", args.listen))?;
    let mut compute = Compute::resolve(&compute, file)?;
    compute.pairs = false;
    let kernels = kernel_tuner(resolve_data_dir(None, file).ok().as_deref());
    let machine = Machine::open(&compute, &kernels, &mut Tuning::default(), None)?;
    anyhow::ensure!(
        machine.devices.lanes() == 1,
        "RK-0310: serve-device offers one device: start it once for each GPU, each with a --listen of its own"
    );
    let (backend, info) = (machine.devices.backend(0), machine.devices.info(0));
    let server = Server::start(listener, backend, machine.threads, options)?;
    let (address, by_tls) = (
        server.address(),
        certificate.as_ref().map_or("", |_| " by TLS"),
    );
    tracing::info!(
        "{} in {} is offered at {address}{by_tls}",
        info.device,
        info.precision
    );
    runtime.block_on(until_stopped(certificate))?;
    let done = server.statistics();
    let positions = quantity(done.positions, "position");
    let batches = quantity(done.batches, "batch");
    tracing::info!("ending; evaluated {positions} in {batches}");
    Ok(())
}

/// Waits for a signal that asks the program to end. Meanwhile a certificate is read again when its files change, and on
/// SIGHUP, which does not end the program then.
async fn until_stopped(certificate: Option<ServerCertificate>) -> anyhow::Result<()> {
    let mut signals = StopSignals::listen().context("signals cannot be listened to")?;
    let Some(certificate) = certificate else {
        signals.next().await;
        return Ok(());
    };
    loop {
        tokio::select! {
            signal = signals.next() => match signal {
                StopSignal::Interrupt => return Ok(()),
                StopSignal::Hangup => certificate.reload(),
            },
            () = tokio::time::sleep(ServerCertificate::CHECK_INTERVAL) => certificate.reload_if_changed(),
        }
    }
}
