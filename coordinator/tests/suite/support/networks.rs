//! Network files, small and valid.

use std::collections::HashMap;

use rookery_common::network::NetworkSpec;
use rookery_common::network::file::SPEC_KEY;
use rookery_common::network::layout::tensors;
use safetensors::Dtype;
use safetensors::tensor::TensorView;

/// A network file; each number gives another one.
pub(crate) fn network_file(number: u64) -> Vec<u8> {
    let spec = NetworkSpec {
        training_step: number,
        ..NetworkSpec::resnet(1, 8)
    };
    let list: Vec<(String, Vec<usize>, Vec<u8>)> = tensors(&spec)
        .into_iter()
        .map(|tensor| {
            let shape = tensor.shape.iter().map(|n| *n as usize).collect();
            (
                tensor.name.clone(),
                shape,
                vec![0; 4 * tensor.elements() as usize],
            )
        })
        .collect();
    let views = list.iter().map(|(name, shape, data)| {
        (
            name.clone(),
            TensorView::new(Dtype::F32, shape.clone(), data).unwrap(),
        )
    });
    let json = serde_json::to_string(&spec).unwrap();
    let metadata = HashMap::from([(SPEC_KEY.to_owned(), json)]);
    safetensors::serialize(views, Some(metadata)).unwrap()
}
