//! Networks of the sizes that are trained, and a trained one.

use std::path::Path;

use rookery_common::network::{Role, tensors};

use super::*;

const PAIRS: TowerPath = TowerPath::Layered(Tiling {
    threads: 128,
    pairs: true,
});

#[test]
fn larger_networks_take_the_path_that_suits_them() {
    for (shape, storage, path) in [
        ("2x64", Storage::F32, FUSED),
        ("1x128", Storage::F16, FUSED),
        ("1x136", Storage::F16, LAYERED),
    ] {
        if !storages().contains(&storage) {
            continue;
        }
        let spec = NetworkSpec::from_shape(shape).unwrap();
        let weights = busy_weights(&spec, 3);
        let planner = Planner::new(&TRUSTED, &weights, storage).unwrap();
        let mut variants = planner.variants();
        variants.retain(|path| !matches!(path, TowerPath::Matrices(_)));
        assert_eq!(variants[0], path, "{shape}");
        let batch = batch_for(&spec, 2, 1);
        let found = evaluate(&mut network(gpu(), &weights, storage, path), &batch);
        let apart = found.largest_difference(&expected(&weights, &batch));
        assert!(apart < tolerance(storage), "{shape}: {apart}");
    }
}

#[test]
fn networks_with_256_channels_are_as_the_processor_computes_them() {
    let weights = busy_weights(&NetworkSpec::from_shape("1x256").unwrap(), 3);
    // Odd, so that the last position has no pair.
    let batch = batch_for(weights.spec(), 5, 1);
    let expected = expected(&weights, &batch);
    for storage in storages().iter().copied() {
        for path in [LAYERED, PAIRS] {
            let found = evaluate(&mut network(gpu(), &weights, storage, path), &batch);
            let apart = found.largest_difference(&expected);
            println!("1x256 {path} {storage:?} {apart:.1e}");
            assert!(apart < tolerance(storage), "{path} {storage:?}: {apart}");
            let mut checked = network(Arc::clone(&CHECKED), &weights, storage, path);
            let checked = evaluate(&mut checked, &batch);
            assert_same(&checked, &found, storage, &path.to_string());
        }
    }
}

/// Each block rounds the stream, and the differences add up: they are compared with the largest logit.
#[test]
fn a_deep_network_in_16_bits_is_as_the_processor_computes_it() {
    storages();
    let spec = NetworkSpec::from_shape("10x128").unwrap();
    let mut weights = busy_weights(&spec, 3);
    // A block adds little to the stream, as in trained networks.
    for layout in tensors(&spec) {
        if layout.role == Role::ResidualScale {
            let scale = weights.get_mut(&layout.name).unwrap();
            scale.iter_mut().for_each(|number| *number *= 0.3);
        }
    }
    let batch = batch_for(&spec, 3, 1);
    let mut expected = expected(&weights, &batch);
    let logits = expected.logits.iter();
    let largest = logits.fold(1.0, |most: f32, logit| most.max(logit.abs()));
    let scale = |answer: &mut Evaluations| answer.logits.iter_mut().for_each(|one| *one /= largest);
    scale(&mut expected);
    for path in [FUSED, LAYERED] {
        let mut found = evaluate(&mut network(gpu(), &weights, Storage::F16, path), &batch);
        scale(&mut found);
        let apart = found.largest_difference(&expected);
        println!("10x128 {path} {apart:.1e} of {largest:.1}");
        assert!(apart < tolerance(Storage::F16), "{path}: {apart}");
    }
}

#[test]
fn the_maia_network_is_as_the_processor_computes_it() {
    let default = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data");
    let folder = std::env::var("ROOKERY_DATA").unwrap_or_else(|_| default.to_owned());
    let path = Path::new(&folder).join("lc0/maia-1100.pb.gz");
    if !path.is_file() {
        return println!("NOT RUN: there is no {}", path.display());
    }
    let weights = rookery_model::lc0::read(&path).unwrap();
    let batch = batch_for(weights.spec(), 33, 1);
    let expected = expected(&weights, &batch);
    for storage in storages().iter().copied() {
        for path in [FUSED, LAYERED, PAIRS] {
            let found = evaluate(&mut network(gpu(), &weights, storage, path), &batch);
            let apart = found.largest_difference(&expected);
            println!("Maia 1100 {path} {storage:?} {apart:.1e}");
            assert!(apart < tolerance(storage), "{path} {storage:?}: {apart}");
        }
    }
}
