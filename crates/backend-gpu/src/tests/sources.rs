//! Sources of kernels, for compilers other than that of the GPU at hand: Metal's, Microsoft's and AMD's.

use naga::back::{hlsl, msl};
use naga::proc::{BoundsCheckPolicies, BoundsCheckPolicy};
use naga::valid::{Capabilities, ModuleInfo, ValidationFlags, Validator};

use super::*;
use crate::kernel::Kernel;

/// Workgroup memory of AMD's cards, which is more than most have. Four boards fit into it.
const WORKGROUP_BYTES: u32 = 64 << 10;

/// Accesses without checks, as in the kernels that are used.
pub(super) const UNCHECKED: BoundsCheckPolicies = BoundsCheckPolicies {
    index: BoundsCheckPolicy::Unchecked,
    buffer: BoundsCheckPolicy::Unchecked,
    image_load: BoundsCheckPolicy::Unchecked,
    binding_array: BoundsCheckPolicy::Unchecked,
};

/// Every kernel of a network, each with the first way of computing the tower that has it. Of cooperative matrices with this
/// many rows, if any.
pub(super) fn kernels(
    spec: &NetworkSpec,
    storage: Storage,
    matrix_tile: Option<usize>,
) -> Vec<(TowerPath, Kernel)> {
    let mut gpu = open(Checks::None);
    let own = Arc::get_mut(&mut gpu).unwrap();
    own.adapter.workgroup_bytes = WORKGROUP_BYTES;
    own.adapter.workgroup_threads = 1024;
    own.matrix_tile = matrix_tile;
    let weights = busy_weights(spec, 1);
    let planner = || Planner::new(&gpu, &weights, storage).unwrap();
    let mut all: Vec<(TowerPath, Kernel)> = Vec::new();
    for path in planner().variants() {
        // The GPU at hand may be too small for a kernel. Its source is there all the same.
        let _compiled = gpu.attempt(|| planner().plan(path).unwrap());
        let mut kernels = gpu.kernels();
        kernels.retain(|kernel| all.iter().all(|(_, known)| known != kernel));
        kernels.sort_by(|a, b| (a.name, &a.source).cmp(&(b.name, &b.source)));
        all.extend(kernels.into_iter().map(|kernel| (path, kernel)));
    }
    all
}

/// A kernel as wgpu reads it.
pub(super) fn parsed(source: &str) -> (naga::Module, ModuleInfo) {
    let module = naga::front::wgsl::parse_str(source).unwrap();
    let info = Validator::new(ValidationFlags::all(), Capabilities::all()).validate(&module);
    (module, info.unwrap())
}

fn metal(source: &str, lang_version: (u8, u8)) -> String {
    let (module, info) = parsed(source);
    let options = msl::Options {
        lang_version,
        bounds_check_policies: UNCHECKED,
        zero_initialize_workgroup_memory: false,
        force_loop_bounding: false,
        ..msl::Options::default()
    };
    let all = msl::PipelineOptions::default();
    let (text, names) = msl::write_string(&module, &info, &options, &all).unwrap();
    names.entry_point_names[0].as_ref().unwrap();
    text
}

fn direct_x(source: &str, shader_model: hlsl::ShaderModel) -> String {
    let (module, info) = parsed(source);
    let options = hlsl::Options {
        shader_model,
        zero_initialize_workgroup_memory: false,
        force_loop_bounding: false,
        ..hlsl::Options::default()
    };
    let all = hlsl::PipelineOptions::default();
    let mut text = String::new();
    let mut writer = hlsl::Writer::new(&mut text, &options, &all);
    let names = writer.write(&module, &info, None).unwrap();
    names.entry_point_names[0].as_ref().unwrap();
    text
}

#[test]
fn every_kernel_is_translated_for_metal_and_direct_x() {
    let large = ["2x64", "1x128", "1x256"].map(|shape| NetworkSpec::from_shape(shape).unwrap());
    let mut translated = 0;
    for spec in specs().iter().chain(&large) {
        for storage in storages().iter().copied() {
            // Direct3D's compiler takes 16 bits from this model on.
            let (language, model) = match storage {
                Storage::F32 => ((2, 0), hlsl::ShaderModel::V5_1),
                Storage::F16 => ((2, 4), hlsl::ShaderModel::V6_2),
            };
            for (_, kernel) in kernels(spec, storage, None) {
                assert!(metal(&kernel.source, language).contains("kernel void main_"));
                assert!(direct_x(&kernel.source, model).contains("numthreads"));
                translated += 1;
            }
        }
    }
    println!("{translated} kernels");
}

/// The matrices that Apple's GPUs have.
#[test]
fn kernels_of_matrices_are_translated_for_metal_in_16_bits() {
    let spec = NetworkSpec::from_shape("1x64").unwrap();
    let mut matrices = kernels(&spec, Storage::F16, Some(8));
    matrices.retain(|(path, _)| matches!(path, TowerPath::Matrices(_)));
    assert!(!matrices.is_empty());
    let texts = matrices
        .iter()
        .map(|(_, kernel)| metal(&kernel.source, (2, 4)));
    assert!(texts.filter(|text| text.contains("simdgroup_")).count() > 3);
}
