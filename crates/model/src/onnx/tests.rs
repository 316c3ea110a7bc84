use std::collections::HashSet;

use prost::Message as _;
use rookery_common::ids::ContentHash;
use rookery_common::network::{AuxiliaryHead, NetworkSpec};

use super::*;
use crate::testing::{busy_weights, small_specs};

/// `scripts/check-lc0` runs models; here it is enough that they are whole.
#[test]
fn every_value_of_a_graph_is_made_once_and_before_it_is_used() {
    for spec in small_specs() {
        let bytes = to_bytes(&busy_weights(&spec, 4)).unwrap();
        let model = ModelProto::decode(bytes.as_slice()).unwrap();
        let graph = model.graph.unwrap();
        let mut known: HashSet<&str> = HashSet::new();
        for tensor in &graph.initializer {
            let (numbers, width) = (tensor.dims.iter().product::<i64>() as usize, tensor.width());
            assert_eq!(
                tensor.raw_data().len(),
                numbers * width,
                "{}",
                tensor.name()
            );
            assert!(known.insert(tensor.name()), "{} twice", tensor.name());
        }
        assert!(known.insert(graph.input[0].name()));
        for node in &graph.node {
            for input in &node.input {
                assert!(
                    known.contains(input.as_str()),
                    "{} lacks {input}",
                    node.name()
                );
            }
            for output in &node.output {
                assert!(known.insert(output.as_str()), "{output} twice");
            }
        }
        let outputs: Vec<&str> = graph
            .output
            .iter()
            .map(wire::ValueInfoProto::name)
            .collect();
        assert!(
            outputs.iter().all(|output| known.contains(output)),
            "{outputs:?}"
        );
        assert_eq!(outputs[0], "/output/policy");
    }
}

#[test]
fn the_graph_of_a_seed_never_changes() {
    let mut spec = NetworkSpec::resnet(2, 16);
    spec.auxiliary = AuxiliaryHead::ALL.to_vec();
    let graph = network::graph(&Weights::random(spec, 7).unwrap()).unwrap();
    assert_eq!(
        ContentHash::of(&graph.encode_to_vec()).to_string(),
        "4b6ef4e19e6343445c9bb79bcd48ffe69470e1cee488aaf97622c3361156646c"
    );
}

impl wire::TensorProto {
    fn width(&self) -> usize {
        match self.data_type() {
            wire::tensor_proto::DataType::Int64 => 8,
            _ => 4,
        }
    }
}
