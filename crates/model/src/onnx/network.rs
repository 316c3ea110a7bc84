//! The computation of a network as an ONNX graph: the same as `graph`, in ONNX's operators.

use rookery_common::network::{
    Activation, Dense, DenseHead, Layers, NormalizedConvolution, PolicyLayers, PolicyOutput,
    ResidualBlock, SqueezeExcitation, Tower, ValueHead,
};

use super::builder::{Builder, Value, int, ints};
use super::wire::GraphProto;
use crate::error::Result;
use crate::export_weights::Layer;
use crate::weights::{Tensor, Weights};

/// The graph of a network.
pub(super) fn graph(weights: &Weights) -> Result<GraphProto> {
    let spec = weights.spec();
    let layers = Layers::new(spec)?;
    let mut network = Network {
        weights,
        activation: layers.activation,
        builder: Builder::default(),
    };
    let planes = [spec.input.planes() as i64, 8, 8];
    let explanation = format!("planes of {}, counts undivided", spec.input.name());
    let input = network
        .builder
        .input("/input/planes", &planes, &explanation);
    let Tower::Residual(tower) = &layers.tower;
    let first = Layer::input(weights, &tower.input)?;
    let mut x = network.convolve(&tower.input.name, &input, &first);
    x = network.activate("input/activation", &x);
    for (index, block) in tower.blocks.iter().enumerate() {
        x = network.block(&format!("blocks.{index}"), block, &x)?;
    }
    network.policy(&layers.policy, &x)?;
    network.value(&layers.value, &x)?;
    Ok(network.builder.finish(&spec.shape()))
}

struct Network<'a> {
    weights: &'a Weights,
    activation: Activation,
    builder: Builder,
}

impl Network<'_> {
    fn block(&mut self, name: &str, block: &ResidualBlock, x: &Value) -> Result<Value> {
        let y = self.convolution_and_activation(&block.conv1, x)?;
        let mut y = self.convolution(&block.conv2, &y)?;
        if let Some(layers) = &block.excitation {
            y = self.excite(&format!("{name}.se"), layers, &y)?;
        }
        let sum = self.add(&format!("{name}/sum"), &y, x);
        Ok(self.activate(&format!("{name}/activation"), &sum))
    }

    /// `sigmoid(gamma) * y + beta`; the dense layers are convolutions of a board of one square.
    fn excite(&mut self, name: &str, layers: &SqueezeExcitation, y: &Value) -> Result<Value> {
        let means = self.operator("GlobalAveragePool", &format!("{name}/means"), &[y]);
        let units = self.dense_on_square(&layers.squeeze, &means)?;
        let units = self.activate(&format!("{}/activation", layers.squeeze.name), &units);
        let both = self.dense_on_square(&layers.excite, &units)?;
        let [gamma, beta] = self.builder.halves(&format!("{name}/halves"), &both);
        let gamma = self.operator("Sigmoid", &format!("{name}/gamma"), &[&gamma]);
        let scaled = self.operator("Mul", &format!("{name}/scaled"), &[y, &gamma]);
        Ok(self.add(&format!("{name}/shifted"), &scaled, &beta))
    }

    fn policy(&mut self, layers: &PolicyLayers, x: &Value) -> Result<()> {
        let policy = self.weights.spec().policy.clone();
        let x = self.convolution_and_activation(&layers.convolution, x)?;
        match &layers.output {
            PolicyOutput::Dense(dense) => {
                let flat = self.flatten(&layers.convolution, &x);
                self.dense(dense, &flat, OUTPUT_POLICY)?;
            }
            PolicyOutput::Planes(convolution) => {
                let name = &convolution.name;
                let planes = Layer::affine(self.weights, name)?;
                let planes = self.convolve(name, &x, &planes);
                let flat = self.operator("Flatten", &format!("{name}/flat"), &[&planes]);
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

    fn value(&mut self, layers: &DenseHead, x: &Value) -> Result<()> {
        let x = self.convolution_and_activation(&layers.convolution, x)?;
        let flat = self.flatten(&layers.convolution, &x);
        let hidden = self.dense(&layers.hidden, &flat, &layers.hidden.name)?;
        let hidden = self.activate(&format!("{}/activation", layers.hidden.name), &hidden);
        let raw = self.dense(&layers.output, &hidden, &layers.output.name)?;
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
    fn convolution(&mut self, layer: &NormalizedConvolution, x: &Value) -> Result<Value> {
        let folded = Layer::convolution(self.weights, layer)?;
        Ok(self.convolve(&layer.name, x, &folded))
    }

    fn convolution_and_activation(
        &mut self,
        layer: &NormalizedConvolution,
        x: &Value,
    ) -> Result<Value> {
        let y = self.convolution(layer, x)?;
        Ok(self.activate(&format!("{}/activation", layer.name), &y))
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

    fn dense_on_square(&mut self, dense: &Dense, x: &Value) -> Result<Value> {
        let mut layer = Layer::affine(self.weights, &dense.name)?;
        layer.weight.shape.extend([1, 1]);
        Ok(self.convolve(&dense.name, x, &layer))
    }

    fn dense(&mut self, dense: &Dense, x: &Value, output: &str) -> Result<Value> {
        let layer = Layer::affine(self.weights, &dense.name)?;
        let [weight, bias] = self.constants(&dense.name, &layer);
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

    /// What a convolution gave, plane after plane.
    fn flatten(&mut self, layer: &NormalizedConvolution, x: &Value) -> Value {
        self.operator("Flatten", &format!("{}/flat", layer.name), &[x])
    }

    fn operator(&mut self, operator: &str, name: &str, inputs: &[&Value]) -> Value {
        self.builder.node(operator, name, inputs, Vec::new())
    }
}

/// The name of the policy's logits, as Lc0 writes it.
const OUTPUT_POLICY: &str = "/output/policy";
