//! Lineage as a drawing: inputs on the left, exports on the right.

use crate::view::Flow;

const BOX: (f64, f64) = (210.0, 46.0);
const GAP: (f64, f64) = (70.0, 14.0);
/// Letters that fit into a box.
const MOST_LETTERS: usize = 26;

/// The drawing.
#[derive(Default)]
pub(super) struct Drawing {
    pub(super) width: f64,
    pub(super) height: f64,
    pub(super) boxes: Vec<Place>,
    /// Paths, as SVG has them.
    pub(super) lines: Vec<String>,
    /// The same in words: from, to.
    pub(super) steps: Vec<(String, String)>,
}

/// A box.
pub(super) struct Place {
    pub(super) x: f64,
    pub(super) y: f64,
    pub(super) kind: String,
    /// Its name, cut to the box.
    pub(super) short: String,
    pub(super) name: String,
    pub(super) holds: String,
}

impl Drawing {
    /// Draws a flow: a place stands one column right of the last place it comes from.
    pub(super) fn of(flow: &Flow) -> Self {
        let count = flow.nodes.len();
        let edges: Vec<(usize, usize)> =
            flow.edges.iter().copied().filter(|(from, into)| *from < count && *into < count).collect();
        let mut column = vec![0usize; count];
        // As often as there are places: the longest way is no longer, and circles end.
        for _ in 0..count {
            for (from, into) in &edges {
                column[*into] = column[*into].max((column[*from] + 1).min(count - 1));
            }
        }
        // Exports stand in the last column.
        let last = column.iter().copied().max().unwrap_or(0);
        for (at, node) in flow.nodes.iter().enumerate().filter(|(_, node)| node.kind == "export") {
            if edges.iter().any(|(_, into)| *into == at) && !node.name.is_empty() {
                column[at] = last;
            }
        }
        let mut filled = vec![0usize; last + 1];
        let places: Vec<(f64, f64)> = column
            .iter()
            .map(|at| {
                let row = filled[*at];
                filled[*at] += 1;
                (*at as f64 * (BOX.0 + GAP.0), row as f64 * (BOX.1 + GAP.1))
            })
            .collect();
        let line = |(from, into): &(usize, usize)| {
            let ((x0, y0), (x1, y1)) = (places[*from], places[*into]);
            let (x0, y0, y1) = (x0 + BOX.0, y0 + BOX.1 / 2.0, y1 + BOX.1 / 2.0);
            let middle = f64::midpoint(x0, x1);
            format!("M{x0} {y0}C{middle} {y0} {middle} {y1} {x1} {y1}")
        };
        let rows = filled.iter().copied().max().unwrap_or(0);
        Self {
            width: (last + 1) as f64 * (BOX.0 + GAP.0) - GAP.0,
            height: rows as f64 * (BOX.1 + GAP.1),
            lines: edges.iter().map(line).collect(),
            steps: edges
                .iter()
                .map(|(from, into)| (flow.nodes[*from].name.clone(), flow.nodes[*into].name.clone()))
                .collect(),
            boxes: flow
                .nodes
                .iter()
                .zip(&places)
                .map(|(node, (x, y))| Place {
                    x: *x,
                    y: *y,
                    kind: node.kind.clone(),
                    short: short(&node.name),
                    name: node.name.clone(),
                    holds: node.holds.clone(),
                })
                .collect(),
        }
    }
}

fn short(name: &str) -> String {
    if name.chars().count() <= MOST_LETTERS {
        return name.to_owned();
    }
    let cut: String = name.chars().take(MOST_LETTERS - 1).collect();
    format!("{cut}…")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::FlowNode;

    #[test]
    fn places_stand_right_of_what_they_come_from() {
        let node =
            |kind: &str, name: &str| FlowNode { kind: kind.to_owned(), name: name.to_owned(), ..FlowNode::default() };
        let flow = Flow {
            nodes: vec![
                node("inputs", "files"),
                node("table", "A"),
                node("table", "B"),
                node("export", "X"),
                node("export", "Y"),
            ],
            edges: vec![(0, 1), (1, 2), (2, 3), (1, 4), (9, 1)],
        };
        let drawing = Drawing::of(&flow);
        let columns: Vec<f64> = drawing.boxes.iter().map(|place| place.x / (BOX.0 + GAP.0)).collect();
        assert_eq!(columns, [0.0, 1.0, 2.0, 3.0, 3.0]);
        assert_eq!((drawing.lines.len(), drawing.boxes[4].y), (4, BOX.1 + GAP.1));
        let circle = Flow { nodes: vec![node("table", "A"), node("table", "B")], edges: vec![(0, 1), (1, 0)] };
        assert_eq!(Drawing::of(&circle).boxes.len(), 2, "a circle ends");
        assert_eq!(Drawing::of(&Flow::default()).boxes.len(), 0);
    }
}
