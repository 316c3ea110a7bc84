//! The computation of a network as an ONNX graph: the same as `graph`, in ONNX's operators.

use rookery_common::network::{Activation, PolicyHead, ValueHead};

use super::builder::{Builder, Value, int, ints};
use super::wire::GraphProto;
use crate::error::Result;
use crate::export_weights::Layer;
use crate::weights::{Tensor, Weights};

/// The graph of a network.
pub(super) fn graph(weights: &Weights) -> Result<GraphProto> {
    let spec = weights.spec();
    let body = spec.body()?;
    let mut network = Network {
        weights,
        activation: body.activation,
        builder: Builder::default(),
    };
    let planes = [spec.input.planes() as i64, 8, 8];
    let explanation = format!("planes of {}, counts undivided", spec.input.name());
    let input = network
        .builder
        .input("/input/planes", &planes, &explanation);
    let mut x = network.convolution("input", &input)?;
    x = network.activate("input/activation", &x);
    for index in 0..body.blocks {
        x = network.block(&format!("blocks.{index}"), &x, body.se_ratio.is_some())?;
    }
    network.policy(&x)?;
    network.value(&x)?;
    Ok(network.builder.finish(&spec.shape()))
}

struct Network<'a> {
    weights: &'a Weights,
    activation: Activation,
    builder: Builder,
}

impl Network<'_> {
    fn block(&mut self, name: &str, x: &Value, excites: bool) -> Result<Value> {
        let y = self.convolution(&format!("{name}.conv1"), x)?;
        let y = self.activate(&format!("{name}.conv1/activation"), &y);
        let mut y = self.convolution(&format!("{name}.conv2"), &y)?;
        if excites {
            y = self.excite(&format!("{name}.se"), &y)?;
        }
        let sum = self.add(&format!("{name}/sum"), &y, x);
        Ok(self.activate(&format!("{name}/activation"), &sum))
    }

    /// `sigmoid(gamma) * y + beta`; the dense layers are convolutions of a board of one square.
    fn excite(&mut self, name: &str, y: &Value) -> Result<Value> {
        let means = self.operator("GlobalAveragePool", &format!("{name}/means"), &[y]);
        let units = self.dense_on_square(&format!("{name}.squeeze"), &means)?;
        let units = self.activate(&format!("{name}.squeeze/activation"), &units);
        let both = self.dense_on_square(&format!("{name}.excite"), &units)?;
        let [gamma, beta] = self.builder.halves(&format!("{name}/halves"), &both);
        let gamma = self.operator("Sigmoid", &format!("{name}/gamma"), &[&gamma]);
        let scaled = self.operator("Mul", &format!("{name}/scaled"), &[y, &gamma]);
        Ok(self.add(&format!("{name}/shifted"), &scaled, &beta))
    }

    fn policy(&mut self, x: &Value) -> Result<()> {
        let policy = self.weights.spec().policy.clone();
        let x = self.convolution("policy.conv", x)?;
        let x = self.activate("policy.conv/activation", &x);
        match policy.head {
            PolicyHead::Dense { .. } => {
                let flat = self.flatten("policy.conv/flat", &x);
                self.dense("policy.dense", &flat, OUTPUT_POLICY)?;
            }
            PolicyHead::Convolution => {
                let planes = Layer::affine(self.weights, "policy.planes")?;
                let planes = self.convolve("policy.planes", &x, &planes);
                let flat = self.flatten("policy.planes/flat", &planes);
                let size = policy.encoding.size() as u16;
                let outputs: Vec<i64> = (0..size)
                    .map(|index| policy.output_of(index).into())
                    .collect();
                let outputs = self.builder.indices("policy.outputs", &outputs);
                let axis = vec![int("axis", 1)];
                self.builder
                    .node("Gather", OUTPUT_POLICY, &[&flat, &outputs], axis);
            }
        }
        let explanation = format!("logits of the moves of {}", policy.encoding.name());
        let size = policy.encoding.size() as i64;
        self.builder.output(OUTPUT_POLICY, &[size], &explanation);
        Ok(())
    }

    fn value(&mut self, x: &Value) -> Result<()> {
        let x = self.convolution("value.conv", x)?;
        let x = self.activate("value.conv/activation", &x);
        let flat = self.flatten("value.conv/flat", &x);
        let hidden = self.dense("value.dense1", &flat, "value.dense1")?;
        let hidden = self.activate("value.dense1/activation", &hidden);
        let raw = self.dense("value.dense2", &hidden, "value.dense2")?;
        match self.weights.spec().value {
            ValueHead::Wdl { .. } => {
                let axis = vec![int("axis", 1)];
                self.builder.node("Softmax", "/output/wdl", &[&raw], axis);
                let explanation = "probabilities that the mover wins, draws, loses";
                self.builder.output("/output/wdl", &[3], explanation);
            }
            ValueHead::Scalar { .. } => {
                self.operator("Tanh", "/output/value", &[&raw]);
                let explanation = "from -1, the mover loses, to 1";
                self.builder.output("/output/value", &[1], explanation);
            }
        }
        Ok(())
    }

    /// A convolution with its normalisation.
    fn convolution(&mut self, name: &str, x: &Value) -> Result<Value> {
        let layer = Layer::convolution(self.weights, name)?;
        Ok(self.convolve(name, x, &layer))
    }

    fn convolve(&mut self, name: &str, x: &Value, layer: &Layer) -> Value {
        let kernel = layer.weight.shape.get(2).copied().unwrap_or(1).into();
        let attributes = vec![
            ints("kernel_shape", &[kernel; 2]),
            ints("pads", &[kernel / 2; 4]),
        ];
        let [weight, bias] = self.constants(name, layer);
        self.builder
            .node("Conv", name, &[x, &weight, &bias], attributes)
    }

    fn dense_on_square(&mut self, name: &str, x: &Value) -> Result<Value> {
        let mut layer = Layer::affine(self.weights, name)?;
        layer.weight.shape.extend([1, 1]);
        Ok(self.convolve(name, x, &layer))
    }

    fn dense(&mut self, name: &str, x: &Value, output: &str) -> Result<Value> {
        let layer = Layer::affine(self.weights, name)?;
        let [weight, bias] = self.constants(name, &layer);
        let attributes = vec![int("transB", 1)];
        let inputs = [x, &weight, &bias];
        Ok(self.builder.node("Gemm", output, &inputs, attributes))
    }

    fn constants(&mut self, name: &str, layer: &Layer) -> [Value; 2] {
        let mut constant =
            |part: &str, tensor: &Tensor| self.builder.floats(&format!("{name}.{part}"), tensor);
        [
            constant("weight", &layer.weight),
            constant("bias", &layer.bias),
        ]
    }

    /// Mish is an operator only since version 18.
    fn activate(&mut self, name: &str, x: &Value) -> Value {
        match self.activation {
            Activation::Relu => self.operator("Relu", name, &[x]),
            Activation::Mish => {
                let softplus = self.operator("Softplus", &format!("{name}/softplus"), &[x]);
                let tanh = self.operator("Tanh", &format!("{name}/tanh"), &[&softplus]);
                self.operator("Mul", name, &[x, &tanh])
            }
        }
    }

    fn add(&mut self, name: &str, a: &Value, b: &Value) -> Value {
        self.operator("Add", name, &[a, b])
    }

    fn flatten(&mut self, name: &str, x: &Value) -> Value {
        self.operator("Flatten", name, &[x])
    }

    fn operator(&mut self, operator: &str, name: &str, inputs: &[&Value]) -> Value {
        self.builder.node(operator, name, inputs, Vec::new())
    }
}

/// The name of the policy's logits, as Lc0 writes it.
const OUTPUT_POLICY: &str = "/output/policy";
