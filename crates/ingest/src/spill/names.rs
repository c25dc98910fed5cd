//! Sorted names as columns of a page: how many bytes each shares with the one before, and the rest.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, BinaryBuilder, RecordBatch, UInt32Builder};
use arrow::datatypes::{DataType, Field, Schema, UInt32Type};
use arrow::error::ArrowError;
use tidetable_store::{Result, StoreError};

/// Names in ascending byte order, one after the other in memory.
#[derive(Debug, Default)]
pub(crate) struct Names {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

/// The error of a page that cannot be read although its checksum is right: a fault of this program.
pub(crate) fn damaged() -> StoreError {
    StoreError::Arrow(ArrowError::InvalidArgumentError("a page of a spill is damaged".to_owned()))
}

impl Names {
    pub(crate) fn push(&mut self, name: &[u8]) {
        self.bytes.extend_from_slice(name);
        self.ends.push(self.bytes.len());
    }

    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// The name at `at`; empty if there is none.
    pub(crate) fn get(&self, at: usize) -> &[u8] {
        let start = at.checked_sub(1).and_then(|before| self.ends.get(before)).copied().unwrap_or(0);
        self.ends.get(at).map_or(&[], |end| &self.bytes[start..*end])
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &[u8]> {
        (0..self.len()).map(|at| self.get(at))
    }

    /// The names as a batch of two columns.
    ///
    /// # Errors
    /// Only if the columns do not fit their schema.
    pub(crate) fn to_batch(&self) -> Result<RecordBatch> {
        let (mut shared, mut rest) = (UInt32Builder::new(), BinaryBuilder::new());
        let mut before: &[u8] = &[];
        for name in self.iter() {
            let alike = before.iter().zip(name).take_while(|(one, other)| one == other).count();
            shared.append_value(alike as u32);
            rest.append_value(&name[alike..]);
            before = name;
        }

        let shared_field = Field::new("shared", DataType::UInt32, false);
        let schema = Schema::new(vec![shared_field, Field::new("rest", DataType::Binary, false)]);
        let columns: Vec<ArrayRef> = vec![Arc::new(shared.finish()), Arc::new(rest.finish())];
        Ok(RecordBatch::try_new(Arc::new(schema), columns)?)
    }

    /// The names of such a batch.
    ///
    /// # Errors
    /// If it is not one.
    pub(crate) fn of_batch(batch: &RecordBatch) -> Result<Self, StoreError> {
        let shared = batch.column(0).as_primitive_opt::<UInt32Type>().ok_or_else(damaged)?;
        let rest = batch.column(1).as_binary_opt::<i32>().ok_or_else(damaged)?;

        let mut names = Self::default();
        let mut start = 0;
        for (shared, rest) in shared.values().iter().zip(rest.iter()) {
            let end = start + *shared as usize;
            if end > names.bytes.len() {
                return Err(damaged());
            }
            names.bytes.extend_from_within(start..end);
            start = names.bytes.len() - *shared as usize;
            names.bytes.extend_from_slice(rest.unwrap_or_default());
            names.ends.push(names.bytes.len());
        }
        Ok(names)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_back() {
        for all in [&[][..], &[""], &["", "a", "ab", "abc", "b", "meter-0001", "meter-0002", "meter-1"]] {
            let mut names = Names::default();
            all.iter().for_each(|name| names.push(name.as_bytes()));
            let back = Names::of_batch(&names.to_batch().unwrap()).unwrap();
            assert!(back.iter().eq(all.iter().map(|name| name.as_bytes())), "{all:?}");
        }
    }
}
