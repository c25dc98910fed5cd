//! Kinds of families and granularities of timestamps, in the API's form.

use tidetable_layout::schema::Merge;

use crate::proto::admin::ColumnFamily;
use crate::proto::admin::r#type::Kind;
use crate::proto::admin::r#type::aggregate::Aggregator;

/// Granularity MICROS of a table: newer than the messages of this build.
pub(crate) const MICROS: i32 = 2;

/// How the cells of a family in Bigtable merge; `None` for an aggregate that this build does not know.
pub(crate) fn merge_of(family: &ColumnFamily) -> Option<Merge> {
    let aggregator = match family.value_type.as_ref().and_then(|value| value.kind.as_ref()) {
        Some(Kind::AggregateType(aggregate)) => aggregate.aggregator.as_ref(),
        _ => return Some(Merge::Newest),
    };
    Some(match aggregator? {
        Aggregator::Sum(_) => Merge::Sum,
        Aggregator::Min(_) => Merge::Min,
        Aggregator::Max(_) => Merge::Max,
        Aggregator::HllppUniqueCount(_) => Merge::Hll,
    })
}
