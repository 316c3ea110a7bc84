//! What a device computes for one to sixteen clients on the loopback interface, beside the device alone. `--help` tells
//! the options.

#![expect(clippy::print_stdout, reason = "a benchmark for people to read")]

use std::net::TcpListener;
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::{Duration, Instant};

use rookery_backend_cpu::CpuBackend;
use rookery_backend_gpu::{GpuBackend, KernelTuner};
use rookery_backend_remote::{RemoteAddress, RemoteBackend, RemoteDevice, Server, ServerOptions};
use rookery_common::network::NetworkSpec;
use rookery_engine::dummy::random_batch;
use rookery_engine::{
    Backend, DeviceChoice, Evaluations, Evaluator, LoadedNetwork, ParallelEvaluator, Precision,
};
use rookery_model::{NetworkFile, Weights};

const HELP: &str = "\
Evaluations a second and latency of a device alone and of clients that use it through the loopback interface.

cargo bench -p rookery-backend-remote --bench clients -- [OPTIONS] [NETWORK]...

  NETWORK          a shape such as 6x64, or a network file [6x64]
  --device NAME    cpu or gpu:N [cpu]
  --precision KIND auto, f32 or f16 [auto]
  --clients N,..   clients at once [1,2,4,8,16]
  --batches N,..   positions of a client's batch [1,64,512]
  --threads N      threads of the device [all cores of a processor, 2 of a GPU]
  --seconds N      how long each is measured [3]

The device alone gets batches as large as those of all clients together. The share is that of the device alone. Bytes
are those of a position and of its answer on the wire.";

type Error = Box<dyn std::error::Error + Send + Sync>;

struct Options {
    networks: Vec<String>,
    device: DeviceChoice,
    precision: Precision,
    clients: Vec<usize>,
    batches: Vec<usize>,
    threads: Option<NonZeroUsize>,
    time: Duration,
}

fn main() -> Result<(), Error> {
    let Some(options) = parse(std::env::args().skip(1))? else {
        println!("{HELP}");
        return Ok(());
    };
    let device: Arc<dyn Backend> = match options.device {
        DeviceChoice::Cpu => Arc::new(CpuBackend::new(options.precision)?),
        DeviceChoice::Gpu(number) => Arc::new(GpuBackend::new(
            number,
            options.precision,
            KernelTuner::default(),
        )?),
        other => return Err(format!("{other} is not measured here; --device cpu or gpu:N").into()),
    };
    let cores = thread::available_parallelism()?;
    let of_gpu = NonZeroUsize::MIN.saturating_add(1);
    let of_device = if device.info().is_cpu() {
        cores
    } else {
        of_gpu
    };
    let threads = options.threads.unwrap_or(of_device);
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let server = Server::start(
        listener,
        Arc::clone(&device),
        threads,
        ServerOptions::default(),
    )?;
    let address: RemoteAddress = format!("remote://{}", server.address()).parse()?;
    println!(
        "network clients batch evaluations/s alone share median-ms p99-ms positions-per-batch bytes-up bytes-down"
    );
    for name in &options.networks {
        let weights = load(name)?;
        for &clients in &options.clients {
            for &size in &options.batches {
                let whole =
                    measure_alone(&device, &weights, size * clients, threads, options.time)?;
                let before = server.statistics();
                let remote = measure_clients(&address, &weights, (clients, size), options.time)?;
                let after = server.statistics();
                let batches = (after.batches - before.batches).max(1);
                let gathered = (after.positions - before.positions) as f64 / batches as f64;
                let [up, down] = bytes_of_position(&weights, size);
                println!(
                    "{name} {clients} {size} {:.0} {whole:.0} {:.2} {:.2} {:.2} {gathered:.0} {up:.0} {down:.0}",
                    remote.rate,
                    remote.rate / whole,
                    1e3 * remote.latency(0.5),
                    1e3 * remote.latency(0.99),
                );
            }
        }
    }
    Ok(())
}

/// What one measurement gave.
struct Measured {
    rate: f64,
    /// Seconds of each batch, the shortest first.
    times: Vec<f64>,
}

impl Measured {
    fn latency(&self, share: f64) -> f64 {
        let place = (share * self.times.len() as f64) as usize;
        self.times[place.min(self.times.len() - 1)]
    }
}

/// Evaluations a second without a server: a processor shares out each batch, a GPU has one for each thread.
fn measure_alone(
    device: &Arc<dyn Backend>,
    weights: &Weights,
    size: usize,
    threads: NonZeroUsize,
    time: Duration,
) -> Result<f64, Error> {
    let network = device.load(weights)?;
    if device.info().is_cpu() {
        let evaluator = ParallelEvaluator::new(&network, threads)?;
        return Ok(run(vec![Box::new(evaluator)], weights, size, time)?.rate);
    }
    let evaluators = (0..threads.get()).map(|_| Arc::clone(&network).evaluator());
    Ok(run(evaluators.collect(), weights, size, time)?.rate)
}

fn measure_clients(
    address: &RemoteAddress,
    weights: &Weights,
    (clients, size): (usize, usize),
    time: Duration,
) -> Result<Measured, Error> {
    let mut evaluators = Vec::new();
    for _ in 0..clients {
        let next = Arc::new(CpuBackend::new(Precision::F32)?);
        let patience = Duration::from_secs(1);
        let device = RemoteDevice::new(address.clone());
        let remote = RemoteBackend::open(device, Precision::Auto, next, patience)?;
        let network: Arc<dyn LoadedNetwork> = remote.load(weights)?;
        evaluators.push(network.evaluator());
    }
    run(evaluators, weights, size, time)
}

/// Lets every evaluator evaluate batches on a thread of its own.
fn run(
    evaluators: Vec<Box<dyn Evaluator + Send>>,
    weights: &Weights,
    size: usize,
    time: Duration,
) -> Result<Measured, Error> {
    let spec = weights.spec();
    let start = Barrier::new(evaluators.len());
    let one = |seed: u64, mut evaluator: Box<dyn Evaluator + Send>| -> Result<_, Error> {
        let batch = random_batch(spec.input, spec.policy.encoding, size, seed);
        let (mut answer, mut times) = (Evaluations::default(), Vec::new());
        let warm = evaluator.evaluate(&batch, &mut answer);
        start.wait();
        warm?;
        let begun = Instant::now();
        while begun.elapsed() < time {
            let asked = Instant::now();
            evaluator.evaluate(&batch, &mut answer)?;
            times.push(asked.elapsed().as_secs_f64());
        }
        let rate = (times.len() * size) as f64 / begun.elapsed().as_secs_f64();
        Ok((rate, times))
    };
    let all = thread::scope(|scope| -> Result<Vec<_>, Error> {
        let one = &one;
        let threads: Vec<_> = (0..)
            .zip(evaluators)
            .map(|(seed, evaluator)| scope.spawn(move || one(seed, evaluator)))
            .collect();
        let ended = threads.into_iter().map(std::thread::ScopedJoinHandle::join);
        ended
            .map(|joined| joined.map_err(|_| "a thread ended")?)
            .collect()
    })?;
    let mut times: Vec<f64> = all.iter().flat_map(|(_, times)| times.clone()).collect();
    times.sort_by(f64::total_cmp);
    Ok(Measured {
        rate: all.iter().map(|(rate, _)| rate).sum(),
        times,
    })
}

/// Mean bytes of a position and of its answer in a batch of this size.
fn bytes_of_position(weights: &Weights, size: usize) -> [f64; 2] {
    let spec = weights.spec();
    let batch = random_batch(spec.input, spec.policy.encoding, size, 0);
    rookery_backend_remote::frame_bytes(&batch).map(|bytes| bytes as f64 / size as f64)
}

fn load(name: &str) -> Result<Weights, Error> {
    let path = Path::new(name);
    if path.is_file() {
        return Ok(NetworkFile::read(path)?.into_weights());
    }
    Ok(Weights::random(NetworkSpec::from_shape(name)?, 1)?)
}

fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Option<Options>, Error> {
    let mut options = Options {
        networks: Vec::new(),
        device: DeviceChoice::Cpu,
        precision: Precision::Auto,
        clients: vec![1, 2, 4, 8, 16],
        batches: vec![1, 64, 512],
        threads: None,
        time: Duration::from_secs(3),
    };
    while let Some(argument) = arguments.next() {
        let mut value = || {
            let value = arguments.next();
            value.ok_or_else(|| format!("{argument} needs a value"))
        };
        match argument.as_str() {
            "--help" => return Ok(None),
            // What cargo tells every benchmark.
            "--bench" => {}
            "--device" => options.device = value()?.parse()?,
            "--precision" => options.precision = value()?.parse()?,
            "--clients" => options.clients = numbers(&value()?)?,
            "--batches" => options.batches = numbers(&value()?)?,
            "--threads" => options.threads = Some(value()?.parse()?),
            "--seconds" => options.time = Duration::from_secs_f64(value()?.parse()?),
            flag if flag.starts_with('-') => {
                return Err(format!("{flag} is no option; --help tells them").into());
            }
            network => options.networks.push(network.to_owned()),
        }
    }
    if options.networks.is_empty() {
        options.networks.push("6x64".to_owned());
    }
    Ok(Some(options))
}

fn numbers(text: &str) -> Result<Vec<usize>, Error> {
    let numbers = text.split(',').map(str::parse::<NonZeroUsize>);
    let numbers: Vec<_> = numbers.collect::<Result<_, _>>()?;
    Ok(numbers.into_iter().map(NonZeroUsize::get).collect())
}
