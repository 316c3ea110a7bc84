use rookery_common::network::{NetworkSpec, Program, program_file};

use super::*;
use crate::testing::{busy_weights, small_specs};

fn small_file() -> Vec<u8> {
    Weights::random(NetworkSpec::resnet(1, 8), 3)
        .unwrap()
        .to_bytes()
        .unwrap()
}

fn refusal(bytes: &[u8]) -> String {
    Weights::from_bytes(bytes).unwrap_err().to_string()
}

#[test]
fn a_network_survives_its_file() {
    let folder = tempfile::tempdir().unwrap();
    for spec in small_specs() {
        let weights = busy_weights(&spec, 21);
        let path = folder.path().join("network.safetensors");
        let hash = weights.write(&path).unwrap();
        let (verified, read) = Weights::read(&path).unwrap();
        assert_eq!((verified.hash, verified.spec), (hash, spec.clone()));
        for layout in tensors(&spec) {
            assert_eq!(
                read.get(&layout.name).unwrap(),
                weights.get(&layout.name).unwrap()
            );
        }
        assert_eq!(read.to_bytes().unwrap(), std::fs::read(&path).unwrap());
    }
    let left = std::fs::read_dir(folder.path()).unwrap().count();
    assert_eq!(left, 1, "a partial file was left behind");
}

#[test]
fn a_program_is_no_network_that_could_be_computed() {
    let program = Program::alpha_beta(2);
    let error = refusal(&program_file(program).unwrap());
    assert!(error.contains("the program alphabeta:2"), "{error}");
    let spec = NetworkSpec::of_program(program);
    let error = Weights::random(spec, 1).unwrap_err();
    assert!(matches!(error, ModelError::Program(found) if found == program));
}

#[test]
fn half_precision_files_are_read() {
    let spec = NetworkSpec::resnet(1, 8);
    let halves: Vec<_> = tensors(&spec)
        .into_iter()
        .map(|layout| {
            let shape: Vec<usize> = layout.shape.iter().map(|n| *n as usize).collect();
            let half = 0x3800_u16.to_le_bytes().repeat(layout.elements() as usize);
            (layout.name, shape, half)
        })
        .collect();
    let views = halves.iter().map(|(name, shape, bytes)| {
        (
            name.as_str(),
            TensorView::new(Dtype::F16, shape.clone(), bytes).unwrap(),
        )
    });
    let metadata = HashMap::from([(SPEC_KEY.to_owned(), serde_json::to_string(&spec).unwrap())]);
    let bytes = safetensors::serialize(views, Some(metadata)).unwrap();
    let (_, weights) = Weights::from_bytes(&bytes).unwrap();
    for layout in tensors(&spec) {
        let values = weights.get(&layout.name).unwrap().values();
        assert!(values.iter().all(|value| *value == 0.5), "{}", layout.name);
    }
}

#[test]
fn damaged_files_are_refused_with_a_reason() {
    let good = small_file();
    assert!(refusal(&good[..good.len() - 1]).contains("not a safetensors file"));
    assert!(refusal(b"").contains("the file is empty"));
    let mut huge = good.clone();
    huge[..8].copy_from_slice(&u64::MAX.to_le_bytes());
    assert!(refusal(&huge).contains("the header is"));
    let mut nan = good.clone();
    let last = nan.len() - 4;
    nan[last..].copy_from_slice(&f32::NAN.to_le_bytes());
    assert!(refusal(&nan).contains("not a number"));
}

#[test]
fn a_network_that_is_not_finite_is_not_written() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("network.safetensors");
    let mut weights = Weights::random(NetworkSpec::resnet(1, 8), 3).unwrap();
    weights.get_mut("value.dense2.bias").unwrap().fill(f32::NAN);
    let error = weights.write(&path).unwrap_err().to_string();
    assert!(
        error.contains("value.dense2.bias") && !path.exists(),
        "{error}"
    );
}

#[test]
fn a_folder_that_is_missing_is_named() {
    let weights = Weights::random(NetworkSpec::resnet(1, 8), 3).unwrap();
    let error = weights
        .write(Path::new("/missing/folder/x.safetensors"))
        .unwrap_err();
    assert!(
        error.to_string().contains("/missing/folder/x.safetensors"),
        "{error}"
    );
    let error = Weights::read(Path::new("/missing/x.safetensors")).unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("cannot read /missing/x.safetensors"),
        "{error}"
    );
}
