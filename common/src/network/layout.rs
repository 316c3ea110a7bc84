//! Names and shapes of a network's tensors.
//!
//! The network is Lc0's SE-resnet: convolutions without bias, each followed by a normalisation
//! (`.norm`: `weight`, `bias`, `mean`, `variance`; epsilon 1e-5), two in a block; a
//! squeeze-excitation (`.se`) on a block's second one; a policy head; a value head; auxiliary heads.
//! Convolution weights are `[out, in, height, width]`, dense weights `[out, in]`.

use super::auxiliary::AuxiliaryHead;
use super::spec::{NetworkSpec, PolicyHead, ValueHead};

/// One tensor of a network.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TensorLayout {
    /// The name in the file, for example `blocks.3.conv1.weight`.
    pub name: String,
    /// The shape.
    pub shape: Vec<u32>,
}

impl TensorLayout {
    /// Numbers in the tensor.
    pub fn elements(&self) -> u64 {
        self.shape.iter().map(|n| u64::from(*n)).product()
    }
}

/// The epsilon of every normalisation.
pub const NORM_EPSILON: f64 = 1e-5;

/// Every tensor of a network of this specification, in the order of computation; a program has none.
pub fn tensors(spec: &NetworkSpec) -> Vec<TensorLayout> {
    let Ok(body) = spec.body() else {
        return Vec::new();
    };
    let filters = body.filters;
    let mut list = List::default();
    list.convolution("input", spec.input.planes() as u32, filters, 3);
    for block in 0..body.blocks {
        let name = format!("blocks.{block}");
        list.convolution(&format!("{name}.conv1"), filters, filters, 3);
        list.convolution(&format!("{name}.conv2"), filters, filters, 3);
        if let Some(ratio) = body.se_ratio {
            let units = filters / ratio.max(1);
            list.dense(&format!("{name}.se.squeeze"), filters, units);
            list.dense(&format!("{name}.se.excite"), units, 2 * filters);
        }
    }
    list.policy("policy", spec, filters, (filters, 3));
    list.value(spec, filters);
    for head in &spec.auxiliary {
        let name = format!("auxiliary.{}", head.name());
        match head.outputs() {
            Some(outputs) => {
                let sizes = (AuxiliaryHead::CHANNELS, AuxiliaryHead::HIDDEN);
                list.head(&name, filters, sizes, outputs);
            }
            None => list.policy(&name, spec, filters, (AuxiliaryHead::POLICY_CHANNELS, 1)),
        }
    }
    list.0
}

#[derive(Default)]
struct List(Vec<TensorLayout>);

impl List {
    fn tensor(&mut self, name: String, shape: &[u32]) {
        self.0.push(TensorLayout {
            name,
            shape: shape.to_vec(),
        });
    }

    /// A convolution without bias and its normalisation.
    fn convolution(&mut self, name: &str, inputs: u32, outputs: u32, kernel: u32) {
        self.tensor(format!("{name}.weight"), &[outputs, inputs, kernel, kernel]);
        for part in ["weight", "bias", "mean", "variance"] {
            self.tensor(format!("{name}.norm.{part}"), &[outputs]);
        }
    }

    fn dense(&mut self, name: &str, inputs: u32, outputs: u32) {
        self.tensor(format!("{name}.weight"), &[outputs, inputs]);
        self.tensor(format!("{name}.bias"), &[outputs]);
    }

    /// A policy as the specification has it; one of planes with a first convolution of so many
    /// channels and this kernel.
    fn policy(
        &mut self,
        name: &str,
        spec: &NetworkSpec,
        filters: u32,
        (channels, kernel): (u32, u32),
    ) {
        match spec.policy.head {
            PolicyHead::Convolution => {
                let planes = spec.policy.convolution_planes();
                self.convolution(&format!("{name}.conv"), filters, channels, kernel);
                self.tensor(format!("{name}.planes.weight"), &[planes, channels, 3, 3]);
                self.tensor(format!("{name}.planes.bias"), &[planes]);
            }
            PolicyHead::Dense { channels } => {
                let size = spec.policy.encoding.size() as u32;
                self.convolution(&format!("{name}.conv"), filters, channels, 1);
                self.dense(&format!("{name}.dense"), channels * 64, size);
            }
        }
    }

    fn value(&mut self, spec: &NetworkSpec, filters: u32) {
        let (channels, hidden, outputs) = match spec.value {
            ValueHead::Wdl { channels, hidden } => (channels, hidden, 3),
            ValueHead::Scalar { channels, hidden } => (channels, hidden, 1),
        };
        self.head("value", filters, (channels, hidden), outputs);
    }

    /// A 1x1 convolution to `channels` planes, a dense layer of `hidden` units and another.
    fn head(&mut self, name: &str, filters: u32, (channels, hidden): (u32, u32), outputs: u32) {
        self.convolution(&format!("{name}.conv"), filters, channels, 1);
        self.dense(&format!("{name}.dense1"), channels * 64, hidden);
        self.dense(&format!("{name}.dense2"), hidden, outputs);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn names_are_unique_and_counts_are_known() {
        let spec = NetworkSpec::resnet(2, 32);
        let tensors = tensors(&spec);
        let names: HashSet<_> = tensors.iter().map(|t| &t.name).collect();
        assert_eq!(names.len(), tensors.len());
        let conv = |i: u64, o: u64, k: u64| i * o * k * k + 4 * o;
        let dense = |i: u64, o: u64| i * o + o;
        let block = 2 * conv(32, 32, 3) + dense(32, 8) + dense(8, 64);
        let policy = conv(32, 32, 3) + 80 * 32 * 9 + 80;
        let value = conv(32, 32, 1) + dense(2048, 128) + dense(128, 3);
        assert_eq!(
            spec.parameters(),
            conv(112, 32, 3) + 2 * block + policy + value
        );
    }
}
