//! Which backends compute: the fastest of what the devices offer, measured once and remembered.

use std::num::NonZero;
use std::sync::Arc;
use std::thread::available_parallelism;

use rookery_backend_cpu::CpuBackend;
use rookery_common::network::NetworkSpec;
use rookery_common::protocol::jobs::Backend as NumericClass;
use rookery_engine::backend::compare;
use rookery_engine::{Backend, BackendError, BackendInfo, Precision, fastest};
use rookery_model::Weights;

use super::processor_model;
use crate::beside::{self, Beside};
use crate::config::PrecisionChoice;
use crate::tuning::{MeasuredPair, PrecisionKey, Tuning};

/// Blocks and channels of the network by which a backend is chosen.
const TIMED_NETWORK: (u32, u32) = (2, 64);

/// How the user wants to compute.
#[derive(Debug, Clone, Copy)]
pub(super) struct Preferences {
    pub(super) precision: PrecisionChoice,
    /// Share of the time for which GPUs compute at most.
    pub(super) gpu_share: f64,
}

/// The backends of the first device in whose precision all of them compute.
pub(super) fn candidates(
    lanes: &[Vec<Arc<dyn Backend>>],
) -> Result<Vec<Arc<dyn Backend>>, BackendError> {
    let has = |lane: &Vec<Arc<dyn Backend>>, precision| {
        lane.iter().any(|one| one.info().precision == precision)
    };
    let first = lanes.first().into_iter().flatten();
    let shared: Vec<Arc<dyn Backend>> = first
        .filter(|one| lanes.iter().all(|lane| has(lane, one.info().precision)))
        .map(Arc::clone)
        .collect();
    if shared.is_empty() {
        let none = "the devices have no precision in common".to_owned();
        return Err(BackendError::Failed(none));
    }
    Ok(shared)
}

/// The backends of a pool: for each lane the one that computes in the precision of `first`, then those that can take the place
/// of one that fails, the processor at last. Nothing is computed on a GPU where the processor was chosen.
pub(super) fn in_order(
    lanes: &mut [Vec<Arc<dyn Backend>>],
    first: &Arc<dyn Backend>,
) -> Result<Vec<Arc<dyn Backend>>, BackendError> {
    let chosen = first.info();
    let mut backends = Vec::new();
    for lane in lanes.iter_mut() {
        let is_first = |one: &Arc<dyn Backend>| Arc::ptr_eq(one, first);
        let is_alike = |one: &Arc<dyn Backend>| one.info().precision == chosen.precision;
        let place = lane.iter().position(is_first);
        if let Some(place) = place.or_else(|| lane.iter().position(is_alike)) {
            backends.push(lane.remove(place));
        }
    }
    let rest = lanes.iter_mut().flat_map(std::mem::take);
    backends.extend(rest.filter(|one| {
        let info = one.info();
        let is_exact = info.precision == Precision::F32 || info.precision == chosen.precision;
        is_exact && (info.is_cpu() || !chosen.is_cpu())
    }));
    if !backends.iter().any(is_exact_processor) {
        backends.push(Arc::new(CpuBackend::new(Precision::F32)?));
    }
    Ok(backends)
}

/// A GPU, and how the processor plays beside it.
type GpuBeside = (Arc<dyn Backend>, Beside);

/// The GPU beside which the processor gains, if there is one. Where that cannot be measured, one of the two plays alone,
/// and the next start measures again.
pub(super) fn beside_gpu(
    candidates: &[Arc<dyn Backend>],
    chosen: &Arc<dyn Backend>,
    preferences: Preferences,
    tuning: &mut Tuning,
    cores: usize,
) -> Option<GpuBeside> {
    let measured = measured_pair(candidates, chosen, preferences, tuning, cores);
    measured.unwrap_or_else(|error| {
        let device = &chosen.info().device;
        tracing::warn!(
            "whether the processor gains beside a GPU cannot be measured: {error}; {device} plays alone"
        );
        None
    })
}

/// The GPU beside which the processor gains, if there is one: the backend that was chosen, or else the fastest of the GPUs.
/// That is measured once, and remembered.
fn measured_pair(
    candidates: &[Arc<dyn Backend>],
    chosen: &Arc<dyn Backend>,
    preferences: Preferences,
    tuning: &mut Tuning,
    cores: usize,
) -> Result<Option<GpuBeside>, BackendError> {
    let gpus = candidates.iter().filter(|one| !one.info().is_cpu());
    let gpus: Vec<Arc<dyn Backend>> = gpus.map(Arc::clone).collect();
    let processor = candidates.iter().find(|one| is_exact_processor(one));
    let Some(processor) = processor.filter(|_| !gpus.is_empty()) else {
        return Ok(None);
    };
    let is_gpu_faster = !chosen.info().is_cpu();
    if !is_gpu_faster && !is_exact_processor(chosen) {
        // Games of two kinds of rounding would be one job's.
        return Ok(None);
    }
    let spec = NetworkSpec::resnet(TIMED_NETWORK.0, TIMED_NETWORK.1);
    let key = timing_key(candidates, &spec, preferences.gpu_share);
    let known = tuning.pair(&key).and_then(|pair| {
        let same = |one: &&Arc<dyn Backend>| {
            let info = one.info();
            (&*info.device, info.precision.name()) == (&pair.gpu, &pair.gpu_precision)
        };
        let gpu = gpus.iter().find(same)?;
        let fits = !is_gpu_faster || Arc::ptr_eq(gpu, chosen);
        fits.then(|| (Arc::clone(gpu), pair.beside))
    });
    let may_reuse = preferences.precision != PrecisionChoice::Measure;
    if let Some((gpu, beside)) = known.filter(|_| may_reuse) {
        return Ok(beside.map(|beside| (gpu, beside)));
    }
    tracing::info!(
        "measuring whether the processor gains beside a GPU; this takes some seconds at the first start"
    );
    let weights = Weights::random(spec, 0)?;
    let gpu = if is_gpu_faster {
        Arc::clone(chosen)
    } else {
        fastest(gpus, &weights)?
    };
    let alone = if is_gpu_faster { &gpu } else { processor };
    let gpu_share = preferences.gpu_share;
    let beside = beside::measure([&gpu, processor], alone, gpu_share, cores, &weights)?;
    tuning.note_pair(MeasuredPair {
        key,
        gpu: gpu.info().device.clone(),
        gpu_precision: gpu.info().precision.name().to_owned(),
        beside,
    });
    Ok(beside.map(|beside| (gpu, beside)))
}

/// The backend by which all networks are computed. Where there are several, the fastest is measured, and remembered.
pub(super) fn choose(
    backends: Vec<Arc<dyn Backend>>,
    preferences: Preferences,
    tuning: &mut Tuning,
    unfinished: Option<NumericClass>,
) -> Result<Arc<dyn Backend>, BackendError> {
    if let [only] = backends.as_slice() {
        return Ok(Arc::clone(only));
    }
    let spec = NetworkSpec::resnet(TIMED_NETWORK.0, TIMED_NETWORK.1);
    let key = timing_key(&backends, &spec, preferences.gpu_share);
    if preferences.precision != PrecisionChoice::Measure {
        let find = |is: &dyn Fn(&BackendInfo) -> bool| backends.iter().find(|one| is(one.info()));
        let begun = find(&|info| Some(info.class) == unfinished);
        let known = tuning.choice(&key);
        let is_known = |info: &BackendInfo| {
            let known = known.as_ref();
            known.is_some_and(|(device, numbers)| {
                (device, *numbers) == (&info.device, info.precision)
            })
        };
        if let Some(known) = begun.or_else(|| find(&is_known)) {
            return Ok(Arc::clone(known));
        }
    }
    let names = backends.iter().map(|one| {
        let info = one.info();
        format!("{} in {}", info.device, info.precision)
    });
    let names: Vec<_> = names.collect();
    tracing::info!(
        "measuring what computes fastest: {}; this takes some seconds at the first start",
        names.join(", ")
    );
    let compared = compare(backends, &Weights::random(spec, 0)?, preferences.gpu_share)?;
    let info = compared.fastest.info();
    for (failed, error) in &compared.failures {
        tracing::warn!(
            "{} in {} is not used: {error}; the next start tries it again",
            failed.device,
            failed.precision
        );
    }
    // A failure may pass, for example where another program had the GPU's memory.
    if compared.failures.is_empty() {
        tuning.note_choice(key, &info.device, info.precision);
    }
    Ok(compared.fastest)
}

/// What the choice among some backends depends on.
fn timing_key(backends: &[Arc<dyn Backend>], timed: &NetworkSpec, gpu_share: f64) -> PrecisionKey {
    PrecisionKey {
        processor: processor_model(),
        cores: available_parallelism().map_or(1, NonZero::get),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        device: names_of(backends),
        network: timed.shape(),
        gpu_per_cent: (100.0 * gpu_share).round() as u32,
    }
}

pub(super) fn is_exact_processor(backend: &Arc<dyn Backend>) -> bool {
    backend.info().is_cpu() && backend.info().precision == Precision::F32
}

/// The hardware of some backends, each once, joined by `+`.
fn names_of(backends: &[Arc<dyn Backend>]) -> String {
    let mut names = Vec::new();
    for backend in backends {
        let name = backend.hardware();
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names.join("+")
}

#[cfg(test)]
pub(super) mod tests {
    use rookery_backend_gpu::KernelTuner;
    use rookery_engine::{DeviceChoice, LoadedNetwork};

    use super::*;

    fn preferences(precision: PrecisionChoice) -> Preferences {
        Preferences {
            precision,
            gpu_share: 1.0,
        }
    }

    /// A backend that computes nothing.
    #[derive(Debug)]
    pub(in crate::machine) struct Named(pub BackendInfo);

    impl Backend for Named {
        fn info(&self) -> &BackendInfo {
            &self.0
        }

        fn load(&self, _: &Weights) -> Result<Arc<dyn LoadedNetwork>, BackendError> {
            Err(BackendError::Failed("nothing is computed".to_owned()))
        }
    }

    #[test]
    fn a_backend_is_chosen_once_and_an_unfinished_job_keeps_its_own() {
        let named = |device: &str, precision| -> Arc<dyn Backend> {
            Arc::new(Named(BackendInfo::new(device, precision).unwrap()))
        };
        let all = || {
            vec![
                named("cpu", Precision::F32),
                named("gpu:0", Precision::F32),
                named("cpu", Precision::Bf16),
                named("gpu:0", Precision::F16),
            ]
        };
        let choose = |choice, tuning: &mut Tuning, unfinished| {
            let chosen = super::choose(all(), preferences(choice), tuning, unfinished);
            chosen.map(|backend| backend.info().class)
        };
        let auto = PrecisionChoice::Auto;
        let mut tuning = Tuning::default();
        choose(auto, &mut tuning, None).expect_err("measured");
        let key = timing_key(&all(), &NetworkSpec::resnet(2, 64), 1.0);
        assert_eq!(key.device, "cpu+gpu:0");
        // What is remembered wins over what a measurement would say.
        for (device, precision, class) in [
            ("gpu:0", Precision::F32, NumericClass::GpuF32),
            ("cpu", Precision::Bf16, NumericClass::CpuBf16),
        ] {
            tuning.note_choice(key.clone(), device, precision);
            assert_eq!(choose(auto, &mut tuning, None).unwrap(), class);
        }
        choose(PrecisionChoice::Measure, &mut tuning, None).expect_err("measured");
        // An unfinished job wins over that, but for one of another device.
        for (begun, expected) in [
            (NumericClass::CpuF32, NumericClass::CpuF32),
            (NumericClass::GpuF16, NumericClass::GpuF16),
            (NumericClass::CudaF16, NumericClass::CpuBf16),
        ] {
            let chosen = choose(auto, &mut tuning, Some(begun));
            assert_eq!(chosen.unwrap(), expected);
        }
    }

    #[test]
    fn a_gpu_and_the_processor_play_side_by_side_where_that_is_known_to_gain() {
        let named = |device: &str, precision| -> Arc<dyn Backend> {
            Arc::new(Named(BackendInfo::new(device, precision).unwrap()))
        };
        let all = [
            named("cpu", Precision::F32),
            named("gpu:0", Precision::F32),
            named("gpu:0", Precision::F16),
        ];
        let beside: Beside =
            serde_json::from_str("{\"threads\": 6, \"speeds\": [8000, 500]}").unwrap();
        let spec = NetworkSpec::resnet(TIMED_NETWORK.0, TIMED_NETWORK.1);
        let mut tuning = Tuning::default();
        let find = |chosen: usize, choice, tuning: &mut Tuning| {
            let found = measured_pair(&all, &all[chosen], preferences(choice), tuning, 8);
            found.map(|found| found.map(|(gpu, beside)| (gpu.info().class, beside)))
        };
        let auto = PrecisionChoice::Auto;
        find(2, auto, &mut tuning).expect_err("measured");
        for (known, expected) in [
            (Some(beside), Some((NumericClass::GpuF16, beside))),
            (None, None),
        ] {
            tuning.note_pair(MeasuredPair {
                key: timing_key(&all, &spec, 1.0),
                gpu: "gpu:0".to_owned(),
                gpu_precision: "f16".to_owned(),
                beside: known,
            });
            // Where the processor was chosen alone, too.
            for chosen in [2, 0] {
                assert_eq!(find(chosen, auto, &mut tuning).unwrap(), expected);
            }
            find(1, auto, &mut tuning).expect_err("other numbers are measured");
            find(2, PrecisionChoice::Measure, &mut tuning).expect_err("measured again");
        }
        // Without a GPU there is nothing to measure.
        let alone = measured_pair(&all[..1], &all[0], preferences(auto), &mut tuning, 8);
        assert!(alone.unwrap().is_none());
    }

    #[test]
    fn a_gpu_that_computes_nothing_is_left_for_the_processor_and_tried_again() {
        let gpu: Arc<dyn Backend> =
            Arc::new(Named(BackendInfo::new("gpu:0", Precision::F32).unwrap()));
        let processor: Arc<dyn Backend> = Arc::new(CpuBackend::new(Precision::F32).unwrap());
        let all = vec![processor, gpu];
        let (auto, mut tuning) = (preferences(PrecisionChoice::Auto), Tuning::default());
        let chosen = choose(all.clone(), auto, &mut tuning, None).unwrap();
        assert!(chosen.info().is_cpu());
        for chosen in &all {
            let pair = beside_gpu(&all, chosen, auto, &mut tuning, 8);
            assert!(pair.is_none(), "{}", chosen.info().device);
        }
        assert_eq!(tuning, Tuning::default(), "nothing is remembered");
    }

    #[test]
    fn the_fastest_of_a_processor_is_found_and_remembered() {
        let backends =
            rookery_backends::open(DeviceChoice::Cpu, Precision::Auto, &KernelTuner::default())
                .unwrap();
        let several = backends.len() > 1;
        let mut tuning = Tuning::default();
        let auto = preferences(PrecisionChoice::Auto);
        let measured = choose(backends, auto, &mut tuning, None).unwrap();
        assert_ne!(measured.info().precision, Precision::Auto);
        assert_eq!(tuning != Tuning::default(), several);
    }
}
