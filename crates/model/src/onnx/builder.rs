//! Puts an ONNX graph together, node by node.

use bytes::Bytes;

use super::wire::attribute_proto::AttributeType;
use super::wire::tensor_proto::DataType;
use super::wire::tensor_shape_proto::Dimension;
use super::wire::type_proto::Tensor as TensorType;
use super::wire::{
    AttributeProto, GraphProto, NodeProto, TensorProto, TensorShapeProto, TypeProto, ValueInfoProto,
};
use crate::weights::Tensor;

/// A graph so far. Values have the names of the nodes that make them.
#[derive(Debug, Default)]
pub(super) struct Builder {
    graph: GraphProto,
}

/// The name of a value in the graph.
pub(super) type Value = String;

impl Builder {
    /// A node with one output.
    pub(super) fn node(
        &mut self,
        operator: &str,
        name: &str,
        inputs: &[&Value],
        attributes: Vec<AttributeProto>,
    ) -> Value {
        self.push(operator, name, inputs, attributes, vec![name.to_owned()]);
        name.to_owned()
    }

    /// The halves of a value along its channels.
    pub(super) fn halves(&mut self, name: &str, value: &Value) -> [Value; 2] {
        let outputs = [format!("{name}/0"), format!("{name}/1")];
        let axis = vec![int("axis", 1)];
        self.push("Split", name, &[value], axis, outputs.to_vec());
        outputs
    }

    fn push(
        &mut self,
        operator: &str,
        name: &str,
        inputs: &[&Value],
        attribute: Vec<AttributeProto>,
        output: Vec<Value>,
    ) {
        self.graph.node.push(NodeProto {
            input: inputs.iter().map(|value| (*value).clone()).collect(),
            output,
            name: Some(name.to_owned()),
            op_type: Some(operator.to_owned()),
            attribute,
        });
    }

    /// Constant numbers.
    pub(super) fn floats(&mut self, name: &str, tensor: &Tensor) -> Value {
        let bytes = tensor.values.iter().flat_map(|number| number.to_le_bytes());
        let dims = tensor.shape.iter().copied().map(i64::from).collect();
        self.constant(name, DataType::Float, dims, bytes.collect())
    }

    /// A constant list of indices.
    pub(super) fn indices(&mut self, name: &str, indices: &[i64]) -> Value {
        let bytes = indices.iter().flat_map(|index| index.to_le_bytes());
        let dims = vec![indices.len() as i64];
        self.constant(name, DataType::Int64, dims, bytes.collect())
    }

    fn constant(&mut self, name: &str, kind: DataType, dims: Vec<i64>, bytes: Vec<u8>) -> Value {
        self.graph.initializer.push(TensorProto {
            dims,
            data_type: Some(kind.into()),
            name: Some(name.to_owned()),
            raw_data: Some(Bytes::from(bytes)),
        });
        name.to_owned()
    }

    /// Declares the graph's input, shaped `[batch, …]`.
    pub(super) fn input(&mut self, name: &str, sizes: &[i64], explanation: &str) -> Value {
        self.graph.input.push(value_info(name, sizes, explanation));
        name.to_owned()
    }

    /// Declares one of the graph's outputs, shaped `[batch, …]`.
    pub(super) fn output(&mut self, name: &str, sizes: &[i64], explanation: &str) {
        self.graph.output.push(value_info(name, sizes, explanation));
    }

    /// The graph.
    pub(super) fn finish(mut self, name: &str) -> GraphProto {
        self.graph.name = Some(name.to_owned());
        self.graph
    }
}

/// An attribute that is a number.
pub(super) fn int(name: &str, value: i64) -> AttributeProto {
    AttributeProto {
        name: Some(name.to_owned()),
        i: Some(value),
        r#type: Some(AttributeType::Int.into()),
        ..AttributeProto::default()
    }
}

/// An attribute that is a list of numbers.
pub(super) fn ints(name: &str, values: &[i64]) -> AttributeProto {
    AttributeProto {
        name: Some(name.to_owned()),
        ints: values.to_vec(),
        r#type: Some(AttributeType::Ints.into()),
        ..AttributeProto::default()
    }
}

fn value_info(name: &str, sizes: &[i64], explanation: &str) -> ValueInfoProto {
    let batch = Dimension {
        dim_param: Some("batch".to_owned()),
        ..Dimension::default()
    };
    let fixed = sizes.iter().map(|size| Dimension {
        dim_value: Some(*size),
        ..Dimension::default()
    });
    let shape = TensorShapeProto {
        dim: std::iter::once(batch).chain(fixed).collect(),
    };
    ValueInfoProto {
        name: Some(name.to_owned()),
        r#type: Some(TypeProto {
            tensor_type: Some(TensorType {
                elem_type: Some(DataType::Float.into()),
                shape: Some(shape),
            }),
        }),
        doc_string: Some(explanation.to_owned()),
    }
}
