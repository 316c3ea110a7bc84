//! What a network's outputs mean, whichever backend has computed them.

use rookery_engine::{EvaluatorError, Precision, Wdl};

/// The value of a position: three logits of win, draw and loss, or a number before tanh. Outputs that are not finite
/// give a value that is not.
pub fn value_of(outputs: &[f32]) -> Wdl {
    match *outputs {
        [win, draw, loss] => softmax([win, draw, loss]),
        _ => from_tanh(outputs[0]),
    }
}

fn softmax(logits: [f32; 3]) -> Wdl {
    let most = logits.into_iter().fold(f32::NEG_INFINITY, f32::max);
    let [win, draw, loss] = logits.map(|logit| (logit - most).exp());
    let sum = win + draw + loss;
    Wdl {
        win: win / sum,
        draw: draw / sum,
        loss: loss / sum,
    }
}

/// [`Wdl::from_q`] keeps no trace of a number that is not finite.
fn from_tanh(x: f32) -> Wdl {
    let q = x.tanh();
    if q.is_finite() {
        return Wdl::from_q(q);
    }
    Wdl {
        win: q,
        draw: 0.0,
        loss: 0.0,
    }
}

/// Refuses outputs that are not finite.
///
/// # Errors
///
/// [`EvaluatorError`] naming the first such output, the logits counted first, and the precision.
pub fn check_finite(
    logits: &[f32],
    values: &[Wdl],
    precision: Precision,
) -> Result<(), EvaluatorError> {
    let values = values.iter().flat_map(|wdl| [wdl.win, wdl.draw, wdl.loss]);
    let mut outputs = logits.iter().copied().chain(values);
    match outputs.position(|output| !output.is_finite()) {
        Some(output) => Err(EvaluatorError(format!(
            "RK-0305: output {output} is not a finite number, computed in {precision}"
        ))),
        None => Ok(()),
    }
}
