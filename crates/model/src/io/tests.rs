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
fn a_file_of_16_bit_numbers_is_rounded_and_read() {
    for spec in small_specs() {
        let weights = busy_weights(&spec, 22);
        let half = weights.to_half_bytes().unwrap();
        assert!(half.len() < weights.to_bytes().unwrap().len());
        let (_, read) = Weights::from_bytes(&half).unwrap();
        for layout in tensors(&spec) {
            let kept = read.get(&layout.name).unwrap().values().iter();
            for (kept, whole) in kept.zip(weights.get(&layout.name).unwrap().values()) {
                let most = (whole.abs() / 2048.0).max(f32::from(f16::MIN_POSITIVE_SUBNORMAL));
                assert!((kept - whole).abs() <= most, "{whole} became {kept}");
            }
        }
        assert_eq!(read.to_half_bytes().unwrap(), half);
    }
}

#[test]
fn a_number_that_16_bits_cannot_hold_is_named() {
    let spec = NetworkSpec::resnet(1, 8);
    let mut values: BTreeMap<String, Vec<f32>> = BTreeMap::new();
    for layout in tensors(&spec) {
        let halves = vec![0.5; layout.elements() as usize];
        values.insert(layout.name, halves);
    }
    values.get_mut("input.weight").unwrap()[3] = 65_520.0;
    let weights = Weights::new(spec, values).unwrap();
    assert!(weights.to_bytes().is_ok());
    let error = weights.to_half_bytes().unwrap_err().to_string();
    assert!(
        error.contains("\"input.weight\" holds an infinite value at index 3"),
        "{error}"
    );
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
