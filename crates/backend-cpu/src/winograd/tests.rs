use super::*;
use crate::reference::{convolve as slowly, random};
use crate::simd::tests::every_set;

fn folded(inputs: usize, outputs: usize, kernel: usize) -> FoldedConvolution {
    let wide = |numbers: Vec<f32>| numbers.into_iter().map(f64::from).collect();
    FoldedConvolution {
        outputs,
        inputs,
        kernel,
        weight: wide(random(outputs * inputs * kernel * kernel, 1)),
        bias: wide(random(outputs, 2)),
    }
}

/// What the definition makes of a board `[64][inputs]`, `[64][outputs]`.
fn by_definition(x: &[f32], folded: &FoldedConvolution) -> Vec<f64> {
    let (inputs, outputs) = (folded.inputs, folded.outputs);
    let by_channel = (0..64 * inputs).map(|i| f64::from(x[i % 64 * inputs + i / 64]));
    let by_channel: Vec<f64> = by_channel.collect();
    let y = slowly(&by_channel, &folded.weight, outputs, 3);
    let at = |index| y[index % outputs * 64 + index / outputs] + folded.bias[index % outputs];
    (0..64 * outputs).map(at).collect()
}

#[test]
fn boards_are_as_the_definition_computes_them_with_every_set_of_instructions() {
    for (inputs, outputs) in [(16, 16), (32, 48), (64, 32), (128, 16)] {
        let folded = folded(inputs, outputs, 3);
        let (layer, mut workspace) = (Winograd::new(&folded).unwrap(), Workspace::default());
        for positions in [1, 5, 6, 17] {
            let x = random(positions * 64 * inputs, 3);
            // The first and the last board tell.
            let boards = [0, positions - 1].map(|position| {
                let x = &x[position * 64 * inputs..][..64 * inputs];
                (position, by_definition(x, &folded))
            });
            for instructions in every_set() {
                workspace.instructions = instructions;
                for activation in [None, Some(Activation::Relu)] {
                    let mut y = vec![f32::NAN; positions * 64 * outputs];
                    layer.apply_then(activation, &x, &mut workspace, &mut y);
                    let least = activation.map_or(f64::NEG_INFINITY, |_| 0.0);
                    for (position, expected) in &boards {
                        let found = &y[position * 64 * outputs..][..64 * outputs];
                        let expected = expected.iter().map(|expected| expected.max(least));
                        assert_near(found, expected, inputs, instructions);
                    }
                }
            }
        }
    }
}

/// Checks the mean error closely. The largest one of thousands is chance: it is some ten times the mean, more or less,
/// by the order in which numbers are added.
fn assert_near(
    found: &[f32],
    expected: impl Iterator<Item = f64>,
    inputs: usize,
    instructions: Instructions,
) {
    let (mut most, mut squares) = (0.0_f64, 0.0);
    for (found, expected) in found.iter().zip(expected) {
        let apart = f64::from(*found) - expected;
        assert!(apart.is_finite());
        most = most.max(apart.abs());
        squares += apart * apart;
    }
    let mean = (squares / found.len() as f64).sqrt();
    let bound = 3e-7 * inputs as f64;
    let what = format!("{instructions:?}, {inputs} inputs: {mean}, at most {most}");
    assert!(mean < bound && most < 20.0 * bound, "{what}");
}

#[test]
fn other_kernels_and_channels_are_refused() {
    for (inputs, outputs, kernel) in [(16, 16, 1), (8, 16, 3), (16, 24, 3)] {
        assert!(Winograd::new(&folded(inputs, outputs, kernel)).is_none());
    }
}
