//! A worker whose device is another program's, by TLS: it dies in the middle of a job and comes back with a renewed
//! certificate.

use anyhow::ensure;
use rookery_tests::params::tiny;
use rookery_tests::programs::{Running, eventually, quiet_port};
use rookery_tests::site::{RUN, Site};

/// Starts a program that offers the processor at this address with a certificate of its own, and waits until it does.
async fn device(site: &Site, name: &str, address: &str) -> anyhow::Result<Running> {
    let made = rcgen::generate_simple_self_signed(vec![name.to_owned()])?;
    std::fs::write(site.path("device-cert.pem"), made.cert.pem())?;
    std::fs::write(
        site.path("device-key.pem"),
        made.signing_key.serialize_pem(),
    )?;
    let path = |name: &str| site.path(name).display().to_string();
    let (token, certificate, key) = (
        path("device-token"),
        path("device-cert.pem"),
        path("device-key.pem"),
    );
    let arguments = [
        "serve-device",
        "--listen",
        address,
        "--device",
        "cpu",
        "--device-token-file",
        &token,
        "--tls-cert",
        &certificate,
        "--tls-key",
        &key,
    ];
    let log = site.path(&format!("{name}.log"));
    let mut device = Running::start("rookery-worker", &log, &arguments, &[])?;
    eventually("the device is offered", async || {
        ensure!(device.ended()?.is_none(), "{}", device.printed());
        Ok(device.printed().contains("is offered at").then_some(()))
    })
    .await?;
    Ok(device)
}

/// Waits until the run has this many more positions of training than before.
async fn positions_beyond(site: &Site, before: u64, worker: &mut Running) -> anyhow::Result<u64> {
    eventually("games come in", async || {
        ensure!(worker.ended()?.is_none(), "{}", worker.printed());
        let now = site.run().await?.training_positions;
        Ok((now > before).then_some(now))
    })
    .await
}

#[tokio::test]
async fn a_worker_contributes_by_the_device_of_another_program() -> anyhow::Result<()> {
    let site = Site::start(&tiny()).await?;
    site.submit_random(1).await?;
    std::fs::write(site.path("device-token"), "correct horse battery staple\n")?;
    let address = format!("127.0.0.1:{}", quiet_port()?);
    let first = device(&site, "device-1", &address).await?;

    let folder = site.path("worker").display().to_string();
    let url = site.url();
    let arguments = ["run", "--server", &url, "--run", RUN, "--dir", &folder];
    let (remote, token, certificate) = (
        format!("remotes://{address}"),
        site.path("device-token").display().to_string(),
        site.path("device-cert.pem").display().to_string(),
    );
    let environment = [
        ("ROOKERY_NAME", "worker"),
        ("ROOKERY_DEVICE", remote.as_str()),
        ("ROOKERY_DEVICE_TOKEN_FILE", token.as_str()),
        ("ROOKERY_DEVICE_CA", certificate.as_str()),
        ("ROOKERY_GAMES", "8"),
    ];
    let log = site.path("worker.log");
    let mut worker = Running::start("rookery-worker", &log, &arguments, &environment)?;
    let played = positions_beyond(&site, 0, &mut worker).await?;

    first.kill()?;
    let mut second = device(&site, "device-2", &address).await?;
    // Jobs that were begun with the first device are finished with the second.
    let more = positions_beyond(&site, played, &mut worker).await?;
    positions_beyond(&site, more, &mut worker).await?;
    site.finish("worker", worker)?;
    let said = std::fs::read_to_string(site.path("worker.log"))?;
    ensure!(
        said.contains(&format!("computing on {remote} (f32)")),
        "{said}"
    );
    ensure!(!said.contains("takes its place"), "{said}");
    second.interrupt()?;
    let done = second.printed();
    ensure!(
        done.contains("evaluated") && !done.contains("evaluated 0 "),
        "{done}"
    );
    site.check_ledger()?;
    Ok(())
}
