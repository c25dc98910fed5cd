//! Copy-on-write lists: clones share their items, so that a version costs only its difference to the one before.

use std::ops::{Index, IndexMut};
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A copy-on-write list: an item is copied when it changes, if another list shares it.
#[derive(Debug, Clone, PartialEq)]
pub struct CowList<T>(Vec<Arc<T>>);

impl<T> CowList<T> {
    /// The items, in order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &T> + ExactSizeIterator + Clone {
        self.0.iter().map(Arc::as_ref)
    }

    /// Number of items, in all chunks together.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The item at an index; `None` beyond the end.
    pub fn get(&self, at: usize) -> Option<&T> {
        self.0.get(at).map(Arc::as_ref)
    }

    /// The items as shared references, to be put into other lists.
    pub fn shares_of(&self) -> impl Iterator<Item = &Arc<T>> {
        self.0.iter()
    }

    /// The first item; `None` if the list is empty.
    pub fn first(&self) -> Option<&T> {
        self.0.first().map(Arc::as_ref)
    }

    /// The last item; `None` if the list is empty.
    pub fn last(&self) -> Option<&T> {
        self.0.last().map(Arc::as_ref)
    }

    /// Pairs of consecutive items.
    pub(crate) fn pairs(&self) -> impl Iterator<Item = (&T, &T)> {
        self.0.windows(2).map(|pair| (pair[0].as_ref(), pair[1].as_ref()))
    }

    /// As [`slice::binary_search_by_key`].
    pub fn binary_search_by_key<K: Ord>(&self, key: &K, of: impl Fn(&T) -> K) -> Result<usize, usize> {
        self.0.binary_search_by_key(key, |item| of(item))
    }

    pub(crate) fn push(&mut self, item: T) {
        self.0.push(Arc::new(item));
    }

    pub(crate) fn insert(&mut self, at: usize, item: T) {
        self.0.insert(at, Arc::new(item));
    }

    pub(crate) fn set(&mut self, at: usize, item: T) {
        self.0[at] = Arc::new(item);
    }

    pub(crate) fn retain(&mut self, mut keep: impl FnMut(&T) -> bool) {
        self.0.retain(|item| keep(item));
    }

    pub(crate) fn sort_by_key<K: Ord>(&mut self, of: impl Fn(&T) -> K) {
        self.0.sort_by_key(|item| of(item));
    }

    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    /// Length of the prefix of shared items.
    pub(crate) fn shared_start(&self, other: &Self) -> usize {
        self.0.iter().zip(&other.0).take_while(|(left, right)| Arc::ptr_eq(left, right)).count()
    }

    /// Whether item `at` of this list is shared with item `there` of the other.
    pub fn shares(&self, at: usize, other: &Self, there: usize) -> bool {
        matches!((self.0.get(at), other.0.get(there)), (Some(own), Some(item)) if Arc::ptr_eq(own, item))
    }
}

impl<T: Clone> CowList<T> {
    /// Mutable items; those shared with other lists are copied.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.0.iter_mut().map(Arc::make_mut)
    }
}

impl<T> Default for CowList<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T> Index<usize> for CowList<T> {
    type Output = T;

    fn index(&self, at: usize) -> &T {
        &self.0[at]
    }
}

/// An item that other lists share is copied first.
impl<T: Clone> IndexMut<usize> for CowList<T> {
    fn index_mut(&mut self, at: usize) -> &mut T {
        Arc::make_mut(&mut self.0[at])
    }
}

impl<T> FromIterator<T> for CowList<T> {
    fn from_iter<I: IntoIterator<Item = T>>(items: I) -> Self {
        Self(items.into_iter().map(Arc::new).collect())
    }
}

impl<'a, T> IntoIterator for &'a CowList<T> {
    type Item = &'a T;
    type IntoIter = std::iter::Map<std::slice::Iter<'a, Arc<T>>, fn(&'a Arc<T>) -> &'a T>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter().map(Arc::as_ref)
    }
}

impl<T: Serialize> Serialize for CowList<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter())
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for CowList<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Vec::<T>::deserialize(deserializer)?.into_iter().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_seen_in_one_list_only() {
        let first: CowList<String> = ["a", "b", "c"].map(str::to_owned).into_iter().collect();
        let mut second = first.clone();
        assert_eq!(second.shared_start(&first), 3);
        second[1].push('!');
        assert_eq!((first[1].as_str(), second[1].as_str()), ("b", "b!"));
        assert_eq!(second.shared_start(&first), 1);
        assert!(second.shares(2, &first, 2) && !second.shares(1, &first, 1));
        assert_eq!(serde_json::to_string(&second).unwrap(), r#"["a","b!","c"]"#);
        assert_eq!(serde_json::from_str::<CowList<String>>(r#"["a","b!","c"]"#).unwrap(), second);
    }
}
