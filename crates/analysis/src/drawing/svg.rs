//! Search trees as SVG.

use std::fmt::Write as _;

use rookery_engine::branch::Branch;
use shakmaty::{Chess, Color};

use super::Caption;
use super::layout::{Layout, Placed};

const CARD: (f32, f32) = (138.0, 38.0);
const COLUMN: f32 = CARD.0 + 58.0;
const ROW: f32 = CARD.1 + 10.0;
const MARGIN: f32 = 28.0;
const HEADER: f32 = 76.0;
/// Wide enough for the header.
const LEAST_WIDTH: f32 = 860.0;

const STYLE: &str = "\
text{font-family:'Inter','Segoe UI','Helvetica Neue',Arial,sans-serif}\
.title{font-size:17px;font-weight:600;fill:#1d2530}\
.sub{font-size:12px;fill:#5c6877}\
.move{font-size:13.5px;font-weight:600}\
.small{font-size:10.5px}\
.end{text-anchor:end}\
.w{fill:#1d2530}.w2{fill:#5c6877}\
.b{fill:#f4f6f8}.b2{fill:#b9c3cf}\
.more{font-size:10px;fill:#7d8896;paint-order:stroke;stroke:#f3f5f8;stroke-width:4px}";

/// Draws a tree whose root is `position`, from left to right: for each move its visits N, its value
/// Q for the side that made it, and its prior P.
pub fn write(tree: &Branch, position: &Chess, caption: &Caption) -> String {
    let layout = Layout::new(tree, position);
    let width = (layout.columns as f32 * COLUMN + 2.0 * MARGIN).max(LEAST_WIDTH);
    let height = HEADER + layout.rows as f32 * ROW + MARGIN;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
         viewBox=\"0 0 {width} {height}\">\n<style>{STYLE}</style>\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#f3f5f8\"/>\n"
    );
    svg += &header(tree, &layout, caption);
    for node in layout.nodes.iter().rev() {
        if let Some(parent) = node.parent {
            svg += &link(&layout.nodes[parent], node, tree.visits);
        }
    }
    for node in &layout.nodes {
        svg += &card(node);
    }
    svg + "</svg>\n"
}

fn header(tree: &Branch, layout: &Layout, caption: &Caption) -> String {
    let (network, fen) = (escape(&caption.network), escape(&caption.fen));
    format!(
        "<text class=\"title\" x=\"{MARGIN}\" y=\"32\">{network}</text>\n\
         <text class=\"sub\" x=\"{MARGIN}\" y=\"50\">{fen}</text>\n\
         <text class=\"sub\" x=\"{MARGIN}\" y=\"66\">the {} most visited positions of {} visits · N visits · \
         Q value for the side that moved, from −1 to 1 · P prior</text>\n",
        layout.nodes.len(),
        thousands(tree.visits)
    )
}

/// The top left corner of a node's card.
fn corner(node: &Placed) -> (f32, f32) {
    let (x, y) = (node.column as f32 * COLUMN, node.row * ROW);
    (MARGIN + x, HEADER + 6.0 + y)
}

/// The line to a node, the thicker the more visits it carries.
fn link(parent: &Placed, node: &Placed, all: u32) -> String {
    let ((x1, y1), (x2, y2)) = (corner(parent), corner(node));
    let (x1, y1, y2) = (x1 + CARD.0, y1 + CARD.1 / 2.0, y2 + CARD.1 / 2.0);
    let middle = f32::midpoint(x1, x2);
    let share = node.visits as f32 / all.max(1) as f32;
    let width = 1.0 + 8.0 * share.sqrt();
    let color = if node.is_main { "#e0902c" } else { "#b7c2d0" };
    format!(
        "<path d=\"M{x1:.1} {y1:.1}C{middle:.1} {y1:.1} {middle:.1} {y2:.1} {x2:.1} {y2:.1}\" \
         fill=\"none\" stroke=\"{color}\" stroke-width=\"{width:.1}\" stroke-linecap=\"round\"/>\n"
    )
}

fn card(node: &Placed) -> String {
    let (x, y) = corner(node);
    let (fill, class) = match node.mover {
        Color::White => ("#ffffff", "w"),
        Color::Black => ("#36404e", "b"),
    };
    let label = if node.parent.is_none() {
        node.mover
            .fold_wb("White to move", "Black to move")
            .to_owned()
    } else {
        escape(&node.label)
    };
    let border = if node.is_main { "#e0902c" } else { "#c4cdd8" };
    let (w, h) = CARD;
    let mut svg = format!(
        "<g><rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{w}\" height=\"{h}\" rx=\"7\" fill=\"{fill}\" \
         stroke=\"{border}\" stroke-width=\"1.4\"/>\
         <rect x=\"{:.1}\" y=\"{:.1}\" width=\"4\" height=\"{}\" rx=\"2\" fill=\"{}\"/>\
         <text class=\"move {class}\" x=\"{:.1}\" y=\"{:.1}\">{label}</text>",
        x + 5.0,
        y + 6.0,
        h - 12.0,
        color_of(node.q),
        x + 15.0,
        y + 16.5,
    );
    let mut small = |x: f32, y: f32, end: &str, text: &str| {
        let _ = write!(
            svg,
            "<text class=\"small {class}2{end}\" x=\"{x:.1}\" y=\"{y:.1}\">{text}</text>"
        );
    };
    let (right, low) = (x + w - 8.0, y + 31.0);
    small(x + 15.0, low, "", &format!("Q {}", signed(node.q)));
    if node.parent.is_some() {
        small(
            right,
            y + 16.5,
            " end",
            &format!("N {}", thousands(node.visits)),
        );
        small(
            right,
            low,
            " end",
            &format!("P {:.1} %", node.prior * 100.0),
        );
    } else {
        small(right, low, " end", &format!("N {}", thousands(node.visits)));
    }
    if node.hidden_visits > 0 {
        let more = thousands(node.hidden_visits);
        let _ = write!(
            svg,
            "<text class=\"more\" x=\"{:.1}\" y=\"{:.1}\">+{more}</text>",
            x + w + 4.0,
            y + h - 3.0,
        );
    }
    svg + "</g>\n"
}

/// From red for a loss by grey to green for a win.
fn color_of(q: f32) -> String {
    let q = q.clamp(-1.0, 1.0);
    let end = if q < 0.0 {
        [214.0, 66.0, 60.0]
    } else {
        [43.0, 160.0, 92.0]
    };
    let grey = [160.0, 170.0, 182.0];
    let share = q.abs().sqrt();
    let [r, g, b]: [u8; 3] =
        std::array::from_fn(|i| f32::mul_add(share, end[i] - grey[i], grey[i]).round() as u8);
    format!("#{r:02x}{g:02x}{b:02x}")
}

/// A value with its sign and two digits.
pub(super) fn signed(q: f32) -> String {
    format!("{q:+.2}").replace('-', "−")
}

/// `12345` as `12,345`.
pub(super) fn thousands(n: u32) -> String {
    let digits = n.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Text that may stand in XML.
fn escape(text: &str) -> String {
    let plain = text.replace(|c: char| c.is_control(), " ");
    plain
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::super::layout::tests::tree;
    use super::*;

    #[test]
    fn every_node_has_a_card_and_every_child_a_line() {
        let (tree, position) = tree();
        let caption = Caption {
            network: "<a & b>".to_owned(),
            fen: "startpos".to_owned(),
        };
        let svg = write(&tree, &position, &caption);
        assert_eq!(svg.matches("<g>").count(), 30);
        assert_eq!(svg.matches("<path").count(), 29);
        assert!(svg.contains("&lt;a &amp; b&gt;") && svg.contains("N 401"));
        assert_eq!(svg.matches("<svg").count(), svg.matches("</svg>").count());
    }

    #[test]
    fn numbers_are_grouped() {
        let grouped = [0, 999, 1000, 1_234_567].map(thousands);
        assert_eq!(grouped, ["0", "999", "1,000", "1,234,567"]);
    }
}
