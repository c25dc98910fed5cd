//! Lineage as a drawing: inputs on the left, exports on the right.

use crate::view::{Flow, FlowEdge};

const BOX: (f64, f64) = (210.0, 46.0);
const GAP: (f64, f64) = (70.0, 14.0);
/// Letters that fit into a box.
const MOST_LETTERS: usize = 22;

/// What the template draws of a flow.
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

/// The box of a place.
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
        let edges: Vec<FlowEdge> =
            flow.edges.iter().copied().filter(|edge| edge.from < count && edge.into < count).collect();
        let mut column = vec![0usize; count];
        // As often as there are places: the longest way is no longer, and circles end.
        for _ in 0..count {
            for FlowEdge { from, into } in &edges {
                column[*into] = column[*into].max((column[*from] + 1).min(count - 1));
            }
        }

        // Exports stand in the last column.
        let last = column.iter().copied().max().unwrap_or(0);
        for (at, _) in flow.nodes.iter().enumerate().filter(|(_, node)| node.kind == "export") {
            column[at] = last;
        }

        let mut grid = Grid { filled: vec![0; last + 1] };
        let places: Vec<(f64, f64)> = column.iter().map(|at| grid.take(*at)).collect();
        let mut lines = Vec::with_capacity(edges.len());
        for FlowEdge { from, into } in &edges {
            // A line that passes a column has a place of its own there, so that it does not seem to come out of a box.
            let between = column[*from] + 1..column[*into];
            let way: Vec<(f64, f64)> = between.map(|at| grid.take(at)).chain([places[*into]]).collect();
            lines.push(line(places[*from], &way));
        }

        let rows = grid.filled.iter().copied().max().unwrap_or(0);
        Self {
            width: (last + 1) as f64 * (BOX.0 + GAP.0) - GAP.0,
            height: rows as f64 * (BOX.1 + GAP.1),
            lines,
            steps: edges
                .iter()
                .map(|edge| (flow.nodes[edge.from].name.clone(), flow.nodes[edge.into].name.clone()))
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

/// The places of a drawing: for each column, the rows that are taken.
struct Grid {
    filled: Vec<usize>,
}

impl Grid {
    /// Takes the next free place of a column: its left and its top.
    fn take(&mut self, column: usize) -> (f64, f64) {
        let row = self.filled[column];
        self.filled[column] += 1;
        (column as f64 * (BOX.0 + GAP.0), row as f64 * (BOX.1 + GAP.1))
    }
}

/// A line from the right of a box along free places to the left of another.
fn line(from: (f64, f64), way: &[(f64, f64)]) -> String {
    let (mut x, mut y) = (from.0 + BOX.0, from.1 + BOX.1 / 2.0);
    let mut path = format!("M{x} {y}");
    for (at, (next_x, top)) in way.iter().enumerate() {
        let (middle, next_y) = (f64::midpoint(x, *next_x), top + BOX.1 / 2.0);
        path.push_str(&format!("C{middle} {y} {middle} {next_y} {next_x} {next_y}"));
        (x, y) = (*next_x, next_y);
        if at + 1 < way.len() {
            x += BOX.0;
            path.push_str(&format!("H{x}"));
        }
    }
    path
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

    fn edges(of: &[[usize; 2]]) -> Vec<FlowEdge> {
        of.iter().map(|[from, into]| FlowEdge { from: *from, into: *into }).collect()
    }

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
            edges: edges(&[[0, 1], [1, 2], [2, 3], [1, 4], [9, 1]]),
        };
        let drawing = Drawing::of(&flow);
        let columns: Vec<f64> = drawing.boxes.iter().map(|place| place.x / (BOX.0 + GAP.0)).collect();
        assert_eq!(columns, [0.0, 1.0, 2.0, 3.0, 3.0]);
        assert_eq!((drawing.lines.len(), drawing.boxes[4].y), (4, BOX.1 + GAP.1));
        let past = &drawing.lines[3];
        assert!(past.contains("H770") && past.contains(" 83 "), "below the box that it passes: {past}");
        let circle = Flow { nodes: vec![node("table", "A"), node("table", "B")], edges: edges(&[[0, 1], [1, 0]]) };
        assert_eq!(Drawing::of(&circle).boxes.len(), 2, "a circle ends");
        assert_eq!(Drawing::of(&Flow::default()).boxes.len(), 0);
    }
}
