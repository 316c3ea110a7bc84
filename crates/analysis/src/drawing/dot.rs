//! Search trees for Graphviz.

use std::fmt::Write as _;

use rookery_engine::branch::Branch;
use shakmaty::{Chess, Color};

use super::Caption;
use super::layout::Layout;
use super::svg::{signed, thousands};

/// Writes a tree whose root is `position` as a directed graph, with the same numbers as the SVG.
pub fn write(tree: &Branch, position: &Chess, caption: &Caption) -> String {
    let layout = Layout::new(tree, position);
    let title = escape(&format!("{}\n{}", caption.network, caption.fen));
    let mut dot = format!(
        "digraph search {{\n  rankdir=LR; ranksep=0.6; nodesep=0.12; labelloc=t; \
         fontname=\"Helvetica\"; label=\"{title}\";\n  node [shape=box, style=\"rounded,filled\", \
         fontname=\"Helvetica\", fontsize=10, color=\"#c4cdd8\"];\n  edge [arrowhead=none];\n"
    );
    for (index, node) in layout.nodes.iter().enumerate() {
        let (fill, font) = match node.mover {
            Color::White => ("#ffffff", "#1d2530"),
            Color::Black => ("#36404e", "#f4f6f8"),
        };
        let (n, q, p) = (thousands(node.visits), signed(node.q), node.prior * 100.0);
        let numbers = match node.parent {
            Some(_) => format!("{}\nN {n}  Q {q}  P {p:.1} %", node.label),
            None => format!("N {n}  Q {q}"),
        };
        let _ = writeln!(
            dot,
            "  n{index} [label=\"{}\", fillcolor=\"{fill}\", fontcolor=\"{font}\"];",
            escape(&numbers)
        );
        if let Some(parent) = node.parent {
            let width = 1.0 + 6.0 * (node.visits as f32 / tree.visits.max(1) as f32).sqrt();
            let color = if node.is_main { "#e0902c" } else { "#b7c2d0" };
            let _ = writeln!(
                dot,
                "  n{parent} -> n{index} [penwidth={width:.1}, color=\"{color}\"];"
            );
        }
    }
    dot + "}\n"
}

/// Text that may stand between quotation marks.
fn escape(text: &str) -> String {
    text.replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::super::layout::tests::tree;
    use super::*;

    #[test]
    fn every_node_and_edge_is_written() {
        let (tree, position) = tree();
        let caption = Caption {
            network: "a \"b\"".to_owned(),
            fen: "startpos".to_owned(),
        };
        let dot = write(&tree, &position, &caption);
        assert_eq!(dot.matches("[label=").count(), 30);
        assert_eq!(dot.matches(" -> ").count(), 29);
        assert!(dot.contains("a \\\"b\\\"\\nstartpos"));
    }
}
