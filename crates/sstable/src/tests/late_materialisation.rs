//! Reading only records that one column's values let pass gives those that a filter of everything gives.

use arrow::array::{Array, ArrayRef};
use arrow::buffer::BooleanBuffer;
use proptest::prelude::*;
use tidetable_layout::Projection;

use crate::group::RecordFilter;
use crate::options::WriteOptions;
use crate::stripe::Scalar;

use super::generate::{self, Random};
use super::{open, spell, write};

/// Keeps records by their number, whatever their values.
#[derive(Debug)]
struct Every {
    column: (usize, usize),
    step: usize,
    first: usize,
}

impl RecordFilter for Every {
    fn column(&self) -> (usize, usize) {
        self.column
    }

    fn keep(&self, values: &ArrayRef) -> BooleanBuffer {
        BooleanBuffer::collect_bool(values.len(), |at| at % self.step == self.first)
    }

    fn may_keep(&self, _: (Scalar, Scalar)) -> bool {
        true
    }
}

fn check(seed: u64, rows: usize) {
    let mut random = Random(seed);
    let schema = generate::schema(&mut random);
    let block = generate::block(&schema, rows, &mut random);
    let options = WriteOptions::new(1);
    let reader = open(&write(&schema, &block, std::slice::from_ref(&(0..block.keys.len())), &options).0);
    let all = Projection::all(&schema);
    for (at, group) in schema.groups.iter().enumerate() {
        for column in 0..group.columns.len() {
            let step = 1 + random.below(40) as usize;
            let keep = Every { column: (at, column), step, first: random.below(step as u64) as usize };
            let rows = random.below(3) as usize..block.keys.len();
            let stripe = reader.stripe(0).unwrap();
            let full = spell(&stripe.read(rows.clone(), &all).unwrap(), 0..rows.len());
            let found = stripe.into_filtered(rows.clone(), &all, &keep).unwrap();
            let (mut number, mut kept) = (0, 0);
            let mut expected = full.clone();
            for (_, groups) in &mut expected {
                groups[at].as_mut().unwrap().retain(|_| {
                    number += 1;
                    kept += usize::from((number - 1) % step == keep.first);
                    (number - 1) % step == keep.first
                });
            }
            expected.retain(|(_, groups)| !groups[at].as_ref().unwrap().is_empty());
            let found = found.map_or(Vec::new(), |block| spell(&block, 0..block.keys.len()));
            assert!(
                found == expected || (kept > number / 8 && found == full),
                "{keep:?}: {found:?} is not {expected:?}"
            );
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]
    #[test]
    fn kept_records_are_those_of_a_filter(seed in any::<u64>(), rows in 4usize..60) {
        check(seed, rows);
    }
}
