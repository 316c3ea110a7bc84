//! Variants of kernels, and the choice among them.

use std::cell::RefCell;
use std::path::Path;

use super::*;
use crate::adapter::GpuAdapter;
use crate::variant::MatrixTiling;

/// A card, as far as tuning knows.
fn card() -> GpuAdapter {
    GpuAdapter {
        is_software: false,
        ..gpu().adapter.clone()
    }
}

#[test]
fn every_variant_gives_the_same_numbers_of_its_path() {
    for (seed, spec) in small_specs().into_iter().enumerate() {
        let weights = busy_weights(&spec, seed as u64);
        // Odd, so that the last position has no pair, and no multiple of any number of boards.
        let batch = batch_for(&spec, 7, 2);
        let expected = expected(&weights, &batch);
        for storage in storages().iter().copied() {
            let variants = Planner::new(&TRUSTED, &weights, storage)
                .unwrap()
                .variants();
            assert!(
                variants.len() > 6 && variants.contains(&LAYERED),
                "{variants:?}"
            );
            let mut first: [Option<Evaluations>; 3] = [const { None }; 3];
            for path in variants {
                let found = evaluate(&mut network(gpu(), &weights, storage, path), &batch);
                let apart = found.largest_difference(&expected);
                assert!(
                    apart < tolerance(storage),
                    "{path} {storage:?} {apart} {spec:?}"
                );
                let place = match path {
                    TowerPath::Fused { .. } => 0,
                    TowerPath::Layered(_) => 1,
                    TowerPath::Matrices(_) => 2,
                };
                let same = first[place].get_or_insert_with(|| found.clone());
                assert_same(same, &found, storage, &format!("{path} {spec:?}"));
            }
        }
    }
}

#[test]
fn variants_with_checks_give_the_same_bits() {
    let spec = small_specs().remove(0);
    let weights = busy_weights(&spec, 1);
    let batch = batch_for(&spec, 5, 2);
    for storage in storages().iter().copied() {
        let variants = Planner::new(&TRUSTED, &weights, storage)
            .unwrap()
            .variants();
        for path in variants {
            let [checked, trusted] = [&CHECKED, &TRUSTED].map(|gpu| {
                let mut evaluator = network(Arc::clone(gpu), &weights, storage, path);
                evaluate(&mut evaluator, &batch)
            });
            assert_same(&checked, &trusted, storage, &path.to_string());
        }
    }
}

/// What a tuner loads for a network on a card.
fn loaded(tuner: &KernelTuner, adapter: &GpuAdapter, spec: &NetworkSpec) -> Vec<TowerPath> {
    loaded_of(&[FUSED, LAYERED], tuner, adapter, spec)
}

fn loaded_of(
    variants: &[TowerPath],
    tuner: &KernelTuner,
    adapter: &GpuAdapter,
    spec: &NetworkSpec,
) -> Vec<TowerPath> {
    let weights = busy_weights(spec, 1);
    let batch = batch_for(spec, 3, 1);
    let all = RefCell::new(Vec::new());
    let load = |path| -> Result<_, BackendError> {
        all.borrow_mut().push(path);
        if let TowerPath::Matrices(_) = path {
            return Err(BackendError::Failed("this card has none".to_owned()));
        }
        let network = GpuNetwork::new(gpu(), &weights, Storage::F32, path)?;
        Ok(Arc::new(network))
    };
    let found = tuner.fastest(adapter, spec, Storage::F32, variants, &batch, load);
    found.unwrap();
    all.into_inner()
}

fn edited(path: &Path, change: impl Fn(&mut serde_json::Value)) {
    let mut file = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    change(&mut file);
    std::fs::write(path, file.to_string()).unwrap();
}

#[test]
fn a_network_is_tuned_once_for_a_gpu_its_driver_and_the_shape() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("new/gpu-tuning.json");
    let (card, spec) = (card(), NetworkSpec::resnet(1, 8));
    let tuner = KernelTuner::remembered(path.clone());
    assert_eq!(loaded(&tuner, &card, &spec), [FUSED, LAYERED]);
    assert_eq!(loaded(&tuner, &card, &spec).len(), 1);
    let known = tuner.known(&card)[0].to_string();
    assert!(
        known.starts_with("a network of 1x8 in f32: ") && known.ends_with("of 2"),
        "{known}"
    );

    // What another start reads, and not what it would measure.
    for chosen in [FUSED, LAYERED] {
        edited(&path, |file| {
            file["tuned"][0]["chosen"] = serde_json::to_value(chosen).unwrap();
        });
        let again = KernelTuner::remembered(path.clone());
        let trained = NetworkSpec {
            training_step: 9,
            ..spec.clone()
        };
        assert_eq!(loaded(&again, &card, &trained), [chosen]);
    }
    let again = KernelTuner::remembered(path.clone());
    let driver = GpuAdapter {
        driver: "newer".to_owned(),
        ..card.clone()
    };
    assert_eq!(loaded(&again, &driver, &spec).len(), 2);
    assert_eq!(loaded(&again, &card, &NetworkSpec::resnet(1, 16)).len(), 2);
    assert_eq!(
        (again.known(&driver).len(), again.known(&card).len()),
        (1, 2)
    );
    // All of it is measured once more where that is asked for.
    let anew = KernelTuner::anew(path);
    assert_eq!(loaded(&anew, &card, &spec).len(), 2);
    assert_eq!(loaded(&anew, &card, &spec).len(), 1);
}

#[test]
fn a_network_is_tuned_once_more_where_kernels_may_use_matrices() {
    let folder = tempfile::tempdir().unwrap();
    let tuner = KernelTuner::remembered(folder.path().join("gpu-tuning.json"));
    let (card, spec) = (
        GpuAdapter {
            matrix_tile: Some(16),
            ..card()
        },
        NetworkSpec::resnet(1, 8),
    );
    let all = [FUSED, LAYERED, TowerPath::Matrices(MatrixTiling::ALL[0])];
    for (choice, variants) in [(MatrixChoice::Off, &all[..2]), (MatrixChoice::On, &all[..])] {
        let tuner = tuner.with_matrices(choice);
        assert_eq!(loaded_of(variants, &tuner, &card, &spec), variants);
        // What was tuned is known from then on, beside the other choice.
        assert_eq!(loaded_of(variants, &tuner, &card, &spec).len(), 1);
    }
    assert_eq!(tuner.known(&card).len(), 2);
}

#[test]
fn matrices_that_are_asked_for_and_not_used_have_a_reason() {
    let [with, without] = [Some(16), None].map(|matrix_tile| GpuAdapter {
        matrix_tile,
        ..card()
    });
    for (choice, adapter, storage, reason) in [
        (MatrixChoice::On, &with, Storage::F16, ""),
        (MatrixChoice::On, &with, Storage::F32, "precision is f32"),
        (
            MatrixChoice::On,
            &without,
            Storage::F16,
            "no cooperative matrices",
        ),
        (MatrixChoice::Auto, &without, Storage::F16, ""),
        (MatrixChoice::Off, &with, Storage::F32, ""),
    ] {
        let found = choice.obstacle(adapter, storage).unwrap_or_default();
        assert_eq!(found.is_empty(), reason.is_empty(), "{choice} {storage:?}");
        assert!(found.contains(reason), "{found}");
    }
}

#[test]
fn a_processor_in_a_gpus_place_is_tuned_only_where_that_is_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("gpu-tuning.json");
    let (software, spec) = (
        GpuAdapter {
            is_software: true,
            ..card()
        },
        NetworkSpec::resnet(1, 8),
    );
    for tuner in [
        KernelTuner::default(),
        KernelTuner::remembered(path.clone()),
    ] {
        assert_eq!(loaded(&tuner, &software, &spec), [FUSED]);
    }
    assert_eq!(loaded(&KernelTuner::anew(path), &software, &spec).len(), 2);
}

#[test]
fn a_file_that_is_damaged_or_of_another_program_is_set_aside() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("gpu-tuning.json");
    let aside = folder.path().join("gpu-tuning.json.old");
    let (card, spec) = (card(), NetworkSpec::resnet(1, 8));
    for damage in [
        |path: &Path| std::fs::write(path, "{\"program\":").unwrap(),
        |path: &Path| edited(path, |file| file["program"] = "0.0.1".into()),
        |path: &Path| {
            edited(path, |file| {
                file["tuned"][0]["chosen"] = "tensor-cores".into();
            });
        },
    ] {
        loaded(&KernelTuner::anew(path.clone()), &card, &spec);
        damage(&path);
        let damaged = std::fs::read(&path).unwrap();
        let tuner = KernelTuner::remembered(path.clone());
        assert!(tuner.known(&card).is_empty() && !path.exists());
        assert_eq!(std::fs::read(&aside).unwrap(), damaged);
        assert_eq!(loaded(&tuner, &card, &spec).len(), 2);
    }
}

#[test]
fn a_variant_that_computes_wrongly_is_never_chosen() {
    let folder = tempfile::tempdir().unwrap();
    let tuner = KernelTuner::remembered(folder.path().join("gpu-tuning.json"));
    let spec = NetworkSpec::resnet(1, 8);
    let weights = busy_weights(&spec, 1);
    let batch = batch_for(&spec, 3, 1);
    let attempt = |wrong: &[TowerPath]| {
        let load = |path: TowerPath| -> Result<_, BackendError> {
            if wrong.contains(&path) {
                return Err(BackendError::Failed(format!("{path} is wrong")));
            }
            Ok(Arc::new(GpuNetwork::new(
                gpu(),
                &weights,
                Storage::F32,
                path,
            )?))
        };
        tuner.fastest(
            &card(),
            &spec,
            Storage::F32,
            &[FUSED, LAYERED],
            &batch,
            load,
        )
    };
    let none = attempt(&[FUSED, LAYERED]).unwrap_err().to_string();
    assert_eq!(none, format!("{FUSED} is wrong"));
    let found = attempt(&[FUSED]).unwrap();
    assert_eq!(found.kernels(), Some(LAYERED.to_string()));
}
