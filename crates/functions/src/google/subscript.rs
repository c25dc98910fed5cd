//! Items of arrays: `array[OFFSET(n)]`, `[SAFE_OFFSET(n)]`, `[ORDINAL(n)]`, `[SAFE_ORDINAL(n)]`, and `array[n]` of GoogleSQL,
//! which counts from 0.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, UInt32Array};
use arrow::compute::take;
use arrow::datatypes::{DataType, Field, Int64Type};
use datafusion::common::{exec_err, plan_err};
use datafusion::error::Result;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

use crate::google::function::list_item;

/// The function around the index of `value[index]` in GoogleSQL: an index from 0, or the key of a map.
pub const INDEX: &str = "google_index";

/// How an item of an array is named.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum ListIndex {
    /// From 0; beyond the array is an error.
    Offset,
    SafeOffset,
    /// From 1; beyond the array is an error.
    Ordinal,
    SafeOrdinal,
    /// `value[index]` as GoogleSQL has it.
    Plain,
}

impl ListIndex {
    const ALL: [Self; 5] = [Self::Offset, Self::SafeOffset, Self::Ordinal, Self::SafeOrdinal, Self::Plain];

    fn registered(self) -> &'static str {
        match self {
            Self::Offset => "offset",
            Self::SafeOffset => "safe_offset",
            Self::Ordinal => "ordinal",
            Self::SafeOrdinal => "safe_ordinal",
            Self::Plain => INDEX,
        }
    }

    /// The index that `key` calls, with its number.
    pub(crate) fn of(key: &Expr) -> Option<(Self, &Expr)> {
        let Expr::ScalarFunction(ScalarFunction { func, args }) = key else { return None };
        let [number] = args.as_slice() else { return None };
        let index = Self::ALL.into_iter().find(|index| index.registered() == func.name())?;
        Some((index, number))
    }

    fn is_safe(self) -> bool {
        matches!(self, Self::SafeOffset | Self::SafeOrdinal)
    }

    fn first(self) -> i64 {
        i64::from(matches!(self, Self::Ordinal | Self::SafeOrdinal))
    }
}

/// The functions that stand in brackets.
pub(crate) fn functions() -> Vec<Arc<ScalarUDF>> {
    let index = |index| {
        let signature = Signature::any(1, Volatility::Immutable);
        Arc::new(ScalarUDF::new_from_impl(Marker { index, signature }))
    };
    ListIndex::ALL.into_iter().map(index).collect()
}

/// Stands in brackets only, where the planner of field access replaces it.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Marker {
    index: ListIndex,
    signature: Signature,
}

impl ScalarUDFImpl for Marker {
    fn name(&self) -> &str {
        self.index.registered()
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, kinds: &[DataType]) -> Result<DataType> {
        match kinds {
            [kind] => Ok(kind.clone()),
            _ => plan_err!("{} takes one number", self.name()),
        }
    }

    fn invoke_with_args(&self, _: ScalarFunctionArgs) -> Result<ColumnarValue> {
        exec_err!("{} stands in brackets behind an array, as in values[{}(0)]", self.name(), self.name())
    }
}

/// `list[index(number)]`.
pub(crate) fn list_element(list: Expr, index: ListIndex, number: Expr) -> Expr {
    let signature = Signature::user_defined(Volatility::Immutable);
    let function = Arc::new(ScalarUDF::new_from_impl(ListElement { index, signature }));
    Expr::ScalarFunction(ScalarFunction::new_udf(function, vec![list, number]))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct ListElement {
    index: ListIndex,
    signature: Signature,
}

impl ScalarUDFImpl for ListElement {
    fn name(&self) -> &str {
        match self.index {
            ListIndex::Offset => "element_at_offset",
            ListIndex::SafeOffset => "element_at_safe_offset",
            ListIndex::Ordinal => "element_at_ordinal",
            ListIndex::SafeOrdinal => "element_at_safe_ordinal",
            ListIndex::Plain => "element_at_index",
        }
    }

    fn schema_name(&self, args: &[Expr]) -> Result<String> {
        let [list, number] = args else { return plan_err!("{} takes an array and a number", self.name()) };
        let (list, number) = (list.schema_name(), number.schema_name());
        Ok(match self.index {
            ListIndex::Plain => format!("{list}[{number}]"),
            index => format!("{list}[{}({number})]", index.registered()),
        })
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, kinds: &[DataType]) -> Result<DataType> {
        match kinds.first().and_then(list_item) {
            Some(item) => Ok(item.clone()),
            None => plan_err!("an index in brackets is for an array"),
        }
    }

    fn coerce_types(&self, kinds: &[DataType]) -> Result<Vec<DataType>> {
        match kinds {
            [list, number] if number.is_integer() || *number == DataType::Null => match list_item(list) {
                Some(item) => {
                    Ok(vec![DataType::List(Arc::new(Field::new_list_field(item.clone(), true))), DataType::Int64])
                }
                None => plan_err!("{list} is not an array, and has no item {}", self.index.registered()),
            },
            [_, number] => plan_err!("an item of an array is named by a number, not by {number}"),
            _ => plan_err!("{} takes an array and a number", self.name()),
        }
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let arrays = ColumnarValue::values_to_arrays(&args.args)?;
        let [lists, numbers] = arrays.as_slice() else { return exec_err!("{} takes two arguments", self.name()) };
        Ok(ColumnarValue::Array(self.elements(lists, numbers)?))
    }
}

impl ListElement {
    fn elements(&self, lists: &ArrayRef, numbers: &ArrayRef) -> Result<ArrayRef> {
        let (Some(lists), Some(numbers)) = (lists.as_list_opt::<i32>(), numbers.as_primitive_opt::<Int64Type>()) else {
            return exec_err!("{} takes an array and a number", self.name());
        };

        let mut places = Vec::with_capacity(lists.len());
        for (row, ends) in lists.value_offsets().windows(2).enumerate() {
            let (Some(start), Some(end)) = (ends.first(), ends.last()) else { continue };
            if lists.is_null(row) || numbers.is_null(row) {
                places.push(None);
                continue;
            }
            let (number, len) = (numbers.value(row), i64::from(end - start));
            let place = number.checked_sub(self.index.first()).filter(|place| (0..len).contains(place));
            if place.is_none() && !self.index.is_safe() {
                return exec_err!(
                    "item {number} is beyond an array of {len}: {} gives NULL there",
                    if self.index.first() == 0 { "SAFE_OFFSET" } else { "SAFE_ORDINAL" }
                );
            }
            places.push(place.map(|place| (i64::from(*start) + place) as u32));
        }
        Ok(take(lists.values(), &UInt32Array::from(places), None)?)
    }
}
