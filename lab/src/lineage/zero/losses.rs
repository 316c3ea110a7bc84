//! The plot of policy and value losses, from the log of `rookery-trainer`.

use std::fmt::Write as _;

use serde::Deserialize;

const WIDTH: f64 = 860.0;
const PANEL: f64 = 200.0;
const MARGIN: f64 = 60.0;

/// A line of the log that is about training.
#[derive(Debug, Deserialize)]
struct Line {
    kind: String,
    step: u64,
    policy_loss: Option<f64>,
    value_loss: Option<f64>,
}

/// Losses after some steps of all trainings together.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Point {
    /// Steps, counted on through all trainings of the log.
    pub step: u64,
    /// Mean loss of the policy since the point before, in nats.
    pub policy: f64,
    /// The same of the value.
    pub value: f64,
}

/// The losses of a log. Each training counts its steps from 0; here they are counted on.
pub fn read(log: &str) -> Vec<Point> {
    let (mut points, mut before, mut last) = (Vec::new(), 0, 0);
    for line in log.lines() {
        let Ok(line) = serde_json::from_str::<Line>(line) else {
            continue;
        };
        let (Some(policy), Some(value)) = (line.policy_loss, line.value_loss) else {
            continue;
        };
        if line.kind != "train" {
            continue;
        }
        if line.step <= last {
            before += last;
        }
        last = line.step;
        points.push(Point {
            step: before + last,
            policy,
            value,
        });
    }
    points
}

/// Both losses as SVG, the policy's above the value's.
pub fn draw(points: &[Point], title: &str) -> String {
    let height = 2.0 * (PANEL + MARGIN) + 20.0;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{height}\" viewBox=\"0 0 {WIDTH} {height}\">\n\
         <style>text{{font:12px sans-serif;fill:#5c6877}}.title{{font-size:16px;fill:#1d2530}}</style>\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#f3f5f8\"/>\n\
         <text class=\"title\" x=\"{MARGIN}\" y=\"28\">{title}</text>\n"
    );
    let policy = points.iter().map(|point| (point.step, point.policy));
    let value = points.iter().map(|point| (point.step, point.value));
    panel(&mut svg, "policy loss", &policy.collect::<Vec<_>>(), 50.0);
    panel(
        &mut svg,
        "value loss",
        &value.collect::<Vec<_>>(),
        50.0 + PANEL + MARGIN,
    );
    svg + "</svg>\n"
}

/// One line by steps, between the least and the largest loss.
fn panel(svg: &mut String, name: &str, line: &[(u64, f64)], top: f64) {
    let Some((last, _)) = line.last() else {
        return;
    };
    let losses = || line.iter().map(|(_, loss)| *loss);
    let (low, high) = (
        losses().fold(f64::INFINITY, f64::min),
        losses().fold(0.0, f64::max),
    );
    let range = (high - low).max(1e-9);
    let place = |(step, loss): &(u64, f64)| {
        let x = MARGIN + (WIDTH - 2.0 * MARGIN) * *step as f64 / (*last).max(1) as f64;
        format!("{x:.1},{:.1}", top + PANEL * (high - loss) / range)
    };
    let path: Vec<String> = line.iter().map(place).collect();
    let (bottom, right) = (top + PANEL, WIDTH - MARGIN);
    let _ = write!(
        svg,
        "<path d=\"M{MARGIN} {top}V{bottom}H{right}\" fill=\"none\" stroke=\"#b7c2d0\"/>\n\
         <polyline points=\"{}\" fill=\"none\" stroke=\"#e0902c\" stroke-width=\"2\"/>\n\
         <text x=\"{MARGIN}\" y=\"{}\">{name}</text>\n\
         <text x=\"8\" y=\"{}\">{high:.3}</text>\n<text x=\"8\" y=\"{bottom}\">{low:.3}</text>\n\
         <text x=\"{right}\" y=\"{}\" text-anchor=\"end\">{last} steps</text>\n",
        path.join(" "),
        top - 6.0,
        top + 10.0,
        bottom + 16.0,
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOG: &str = "{\"kind\":\"train\",\"step\":10,\"policy_loss\":3.0,\"value_loss\":1.0}\n\
        {\"kind\":\"train\",\"step\":20,\"policy_loss\":2.0,\"value_loss\":0.5}\n\
        {\"kind\":\"validation\",\"step\":20,\"policy_loss\":9.0,\"value_loss\":9.0}\n\
        torn\n\
        {\"kind\":\"train\",\"step\":10,\"policy_loss\":1.0,\"value_loss\":0.75}\n";

    #[test]
    fn steps_are_counted_on_from_training_to_training() {
        let point = |step, policy, value| Point {
            step,
            policy,
            value,
        };
        let expected = [
            point(10, 3.0, 1.0),
            point(20, 2.0, 0.5),
            point(30, 1.0, 0.75),
        ];
        assert_eq!(read(LOG), expected);
    }

    #[test]
    fn lines_fill_their_panels() {
        let svg = draw(&read(LOG), "thesis");
        // By hand: a third, two thirds and all of 740 beside 60; 3, 2 and 1 over 200 below 50.
        assert!(
            svg.contains("\"306.7,50.0 553.3,150.0 800.0,250.0\""),
            "{svg}"
        );
        // 1, 1/2 and 3/4 over 200 below 310.
        assert!(
            svg.contains("\"306.7,310.0 553.3,510.0 800.0,410.0\""),
            "{svg}"
        );
        assert!(svg.contains("3.000") && svg.contains("30 steps"), "{svg}");
        assert!(!draw(&[], "nothing").contains("polyline"));
    }
}
