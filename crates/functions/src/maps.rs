//! `map_contains_key` and `map_empty`; `map_keys`, `map_values` and `map_entries` are DataFusion's.

use std::sync::Arc;

use arrow::array::{Array, AsArray, BooleanArray};
use arrow::datatypes::DataType;
use datafusion::common::{exec_err, plan_err};
use datafusion::error::Result;
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility};

use crate::map_get::{Finder, arrays, map_and_key};

/// `map_contains_key(map, key)`: whether the map has the key; null for a null map.
pub(crate) fn map_contains_key() -> Arc<ScalarUDF> {
    Arc::new(ScalarUDF::new_from_impl(ContainsKey { signature: Signature::user_defined(Volatility::Immutable) }))
}

/// `map_empty(map)`: whether the map has no entry; null for a null map.
pub(crate) fn map_empty() -> Arc<ScalarUDF> {
    Arc::new(ScalarUDF::new_from_impl(Empty { signature: Signature::user_defined(Volatility::Immutable) }))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct ContainsKey {
    signature: Signature,
}

impl ScalarUDFImpl for ContainsKey {
    fn name(&self) -> &str {
        "map_contains_key"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Boolean)
    }

    fn coerce_types(&self, kinds: &[DataType]) -> Result<Vec<DataType>> {
        map_and_key(self.name(), kinds)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let arrays = arrays(&args)?;
        let finder = arrays.as_ref().and_then(|[map, key]| Finder::new(map, key));
        let Some(mut finder) = finder else { return exec_err!("map_contains_key takes a map with keys of bytes") };
        let found: BooleanArray =
            (0..args.number_rows).map(|row| (!finder.is_null(row)).then(|| finder.find(row).is_some())).collect();
        Ok(ColumnarValue::Array(Arc::new(found)))
    }
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Empty {
    signature: Signature,
}

impl ScalarUDFImpl for Empty {
    fn name(&self) -> &str {
        "map_empty"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Boolean)
    }

    fn coerce_types(&self, kinds: &[DataType]) -> Result<Vec<DataType>> {
        match kinds {
            [map @ DataType::Map(..)] => Ok(vec![map.clone()]),
            [other] => plan_err!("map_empty takes a map, not {other}"),
            _ => plan_err!("map_empty takes one argument, a map"),
        }
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let arrays = ColumnarValue::values_to_arrays(&args.args)?;
        let Some(map) = arrays.first().and_then(|array| array.as_map_opt()) else {
            return exec_err!("map_empty takes a map");
        };
        let empty = map.offsets().windows(2).map(|ends| ends.first() == ends.last());
        let empty: BooleanArray = empty.enumerate().map(|(row, empty)| map.is_valid(row).then_some(empty)).collect();
        Ok(ColumnarValue::Array(Arc::new(empty)))
    }
}
