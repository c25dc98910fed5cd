//! Which column, or which list of events, the members of objects lead to.
//!
//! A column `a.b` is the member `a.b` of a record, or the member `b` of its object `a`. So a tree has, at each object, the keys
//! that lead somewhere.

use std::collections::{BTreeMap, HashSet};

/// Points in a name at which it is cut in every way; a name with more is only cut at all of them.
const MOST_CUTS: usize = 10;

/// Where the columns of a source are in a record.
#[derive(Debug)]
pub(crate) struct Paths {
    nodes: Vec<Node>,
}

/// An object, or an array, on the way to columns.
#[derive(Debug, Default)]
pub(crate) struct Node {
    pub members: Vec<Member>,
    /// What stands before its keys in names: `at.` for the members of the object `at`.
    pub prefix: String,
    /// Keys that lead nowhere and are known: the first records of the file have them.
    pub others: HashSet<Vec<u8>>,
}

/// A key that leads to columns or lists of events.
#[derive(Debug)]
pub(crate) struct Member {
    pub key: Vec<u8>,
    /// The column that has its value, and how many keys lead to it: of two ways to a column the shorter counts.
    pub column: Option<(usize, u8)>,
    /// What is inside of it, if columns are.
    pub node: Option<usize>,
    /// Whether an array here is a list of events, or leads to one.
    pub is_list: bool,
    /// The list of events that is here.
    pub list: Option<usize>,
}

/// The rest of a name behind the keys on the way here, and what the name is of.
#[derive(Debug, Clone, Copy)]
struct Tail<'a> {
    rest: &'a str,
    target: Target,
}

#[derive(Debug, Clone, Copy)]
enum Target {
    Column(usize),
    List(usize),
}

/// What one key of an object leads to.
#[derive(Default)]
struct Found<'a> {
    column: Option<usize>,
    list: Option<usize>,
    leads_to_list: bool,
    inside: Vec<Tail<'a>>,
}

impl Paths {
    /// The paths of columns, and of the lists that are events.
    pub fn new<'a>(columns: impl Iterator<Item = &'a str>, lists: &'a [String]) -> Self {
        let columns = columns.enumerate().map(|(at, rest)| Tail { rest, target: Target::Column(at) });
        let lists = lists.iter().enumerate().map(|(at, rest)| Tail { rest, target: Target::List(at) });
        let mut paths = Self { nodes: vec![Node::default()] };
        paths.fill(0, "", &columns.chain(lists).collect::<Vec<_>>(), 1);
        paths
    }

    /// The same, where the keys of these names are known.
    pub fn with_known(mut self, names: &[String]) -> Self {
        for node in &mut self.nodes {
            let keys = names.iter().filter_map(|name| name.strip_prefix(&node.prefix));
            node.others = keys.map(|key| key.as_bytes().to_vec()).collect();
        }
        self
    }

    pub fn node(&self, node: usize) -> Option<&Node> {
        self.nodes.get(node)
    }

    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    fn fill(&mut self, node: usize, prefix: &str, tails: &[Tail<'_>], depth: u8) {
        let mut keys: BTreeMap<&str, Found<'_>> = BTreeMap::new();
        for Tail { rest, target } in tails {
            let whole = keys.entry(rest).or_default();
            match target {
                Target::Column(column) => whole.column = Some(*column),
                Target::List(list) => (whole.list, whole.leads_to_list) = (Some(*list), true),
            }
            let cuts: Vec<usize> = rest.match_indices('.').map(|(at, _)| at).collect();
            let most = if cuts.len() > MOST_CUTS { 1 } else { cuts.len() };
            for cut in cuts.into_iter().take(most) {
                let (Some(key), Some(inside)) = (rest.get(..cut), rest.get(cut + 1..)) else { continue };
                let found = keys.entry(key).or_default();
                found.inside.push(Tail { rest: inside, target: *target });
                found.leads_to_list |= matches!(target, Target::List(_));
            }
        }

        let mut members = Vec::with_capacity(keys.len());
        for (key, Found { column, list, leads_to_list, inside }) in keys {
            let inner = (!inside.is_empty()).then(|| {
                self.nodes.push(Node::default());
                let inner = self.nodes.len() - 1;
                self.fill(inner, &format!("{prefix}{key}."), &inside, depth.saturating_add(1));
                inner
            });
            members.push(Member {
                key: key.as_bytes().to_vec(),
                column: column.map(|column| (column, depth)),
                node: inner,
                is_list: leads_to_list,
                list,
            });
        }
        if let Some(node) = self.nodes.get_mut(node) {
            node.members = members;
            prefix.clone_into(&mut node.prefix);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(paths: &Paths, keys: &[&str]) -> Option<(usize, u8)> {
        let (last, above) = keys.split_last()?;
        let mut node = 0;
        for key in above {
            node = paths.nodes[node].members.iter().find(|member| member.key == key.as_bytes())?.node?;
        }
        paths.nodes[node].members.iter().find(|member| member.key == last.as_bytes())?.column
    }

    #[test]
    fn names_with_points_are_cut_in_every_way() {
        let paths = Paths::new(["a.b.c", "a", "a.b"].into_iter(), &[]);
        for keys in [&["a.b.c"][..], &["a", "b.c"], &["a.b", "c"], &["a", "b", "c"]] {
            assert_eq!(found(&paths, keys), Some((0, keys.len() as u8)), "{keys:?}");
        }
        assert_eq!(found(&paths, &["a"]), Some((1, 1)));
        assert_eq!(found(&paths, &["a", "b"]), Some((2, 2)));
        assert_eq!(found(&paths, &["b"]), None);
        let long = ["x"; 40].join(".");
        assert!(Paths::new([long.as_str()].into_iter(), &[]).len() < 2000);
    }
}
