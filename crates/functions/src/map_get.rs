//! `map[key]` for maps with keys of bytes: the value, or null.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BinaryArray, MapArray, UInt32Array};
use arrow::compute::take;
use arrow::datatypes::DataType;
use datafusion::common::{DFSchema, ExprSchema, ScalarValue, exec_err, plan_err};
use datafusion::error::Result;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::planner::{ExprPlanner, PlannerResult, RawFieldAccessExpr};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ExprSchemable, GetFieldAccess, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility, lit,
};

use crate::argument_types::{is_bytes, is_text};
use crate::google::{ListIndex, list_element};
use crate::unpack::is_history;

/// Plans `map[key]`; DataFusion would compare text with bytes.
#[derive(Debug)]
pub(crate) struct MapAccess;

impl ExprPlanner for MapAccess {
    fn plan_field_access(
        &self,
        access: RawFieldAccessExpr,
        schema: &DFSchema,
    ) -> Result<PlannerResult<RawFieldAccessExpr>> {
        let kind = access.expr.get_type(schema as &dyn ExprSchema)?;
        if map_of_bytes(&kind).is_none() {
            return plan_list_access(access, &kind);
        }
        let key = match access.field_access {
            GetFieldAccess::NamedStructField { name } => lit(name),
            GetFieldAccess::ListIndex { key } => match ListIndex::of(&key) {
                Some((ListIndex::Plain, key)) => key.clone(),
                Some(_) => return plan_err!("a map has keys, not offsets: write family['qualifier']"),
                None => *key,
            },
            range @ GetFieldAccess::ListRange { .. } => {
                return Ok(PlannerResult::Original(RawFieldAccessExpr { field_access: range, ..access }));
            }
        };
        let function = Arc::new(ScalarUDF::new_from_impl(MapGet::new()));
        Ok(PlannerResult::Planned(Expr::ScalarFunction(ScalarFunction::new_udf(function, vec![access.expr, key]))))
    }
}

/// Plans an item of an array that GoogleSQL names. Without its functions arrays count from 1, as in DataFusion.
fn plan_list_access(access: RawFieldAccessExpr, kind: &DataType) -> Result<PlannerResult<RawFieldAccessExpr>> {
    let GetFieldAccess::ListIndex { key } = &access.field_access else { return Ok(PlannerResult::Original(access)) };
    if let Some((index, number)) = ListIndex::of(key) {
        return Ok(PlannerResult::Planned(list_element(access.expr, index, number.clone())));
    }
    // The newest cell is `[0]` in GoogleSQL for Bigtable: NULL would be a wrong answer.
    let is_zero = matches!(key.as_ref(), Expr::Literal(ScalarValue::Int64(Some(0)), _));
    if is_zero && is_history(kind) {
        return plan_err!("versions count from 1 here: the newest is [1], or [OFFSET(0)] as in GoogleSQL");
    }
    Ok(PlannerResult::Original(access))
}

/// The value type of a map with keys of bytes.
pub(crate) fn map_of_bytes(kind: &DataType) -> Option<&DataType> {
    let DataType::Map(entries, _) = kind else { return None };
    match entries.data_type() {
        DataType::Struct(fields) => match fields.as_ref() {
            [key, value] if *key.data_type() == DataType::Binary => Some(value.data_type()),
            _ => None,
        },
        _ => None,
    }
}

/// Coerces the arguments map and key: the key to bytes.
pub(crate) fn map_and_key(function: &str, kinds: &[DataType]) -> Result<Vec<DataType>> {
    match kinds {
        [map, key] if map_of_bytes(map).is_some() => {
            if is_bytes(key) || is_text(key) || *key == DataType::Null {
                return Ok(vec![map.clone(), DataType::Binary]);
            }
            plan_err!("a key of this map is bytes or text, not {key}")
        }
        [map, _] => plan_err!("{function} takes a map with keys of bytes, not {map}"),
        _ => plan_err!("{function} takes a map and a key"),
    }
}

/// Looks up the entry of a key in each row of a map; keys are distinct in a row.
pub(crate) struct Finder<'a> {
    map: &'a MapArray,
    names: &'a BinaryArray,
    key: Key<'a>,
    /// Position in its row of the last entry found, because rows of a table are similar.
    guess: usize,
}

enum Key<'a> {
    One(Option<&'a [u8]>),
    PerRow(&'a BinaryArray),
}

impl<'a> Finder<'a> {
    /// `map` has keys of bytes; `key` has one row, or as many as `map`.
    pub(crate) fn new(map: &'a ArrayRef, key: &'a ArrayRef) -> Option<Self> {
        let map = map.as_map_opt()?;
        let (names, keys) = (map.keys().as_binary_opt::<i32>()?, key.as_binary_opt::<i32>()?);
        let key = match keys.len() {
            1 if map.len() != 1 => Key::One(keys.is_valid(0).then(|| keys.value(0))),
            _ => Key::PerRow(keys),
        };
        Some(Self { map, names, key, guess: 0 })
    }

    /// Whether the map or the key of a row is null.
    pub(crate) fn is_null(&self, row: usize) -> bool {
        self.map.is_null(row) || self.key(row).is_none()
    }

    fn key(&self, row: usize) -> Option<&'a [u8]> {
        match self.key {
            Key::One(key) => key,
            Key::PerRow(keys) => keys.is_valid(row).then(|| keys.value(row)),
        }
    }

    /// Index, among the entries of all maps, of the entry of a row with the wanted key.
    pub(crate) fn find(&mut self, row: usize) -> Option<usize> {
        let key = self.key(row).filter(|_| self.map.is_valid(row))?;
        let offsets = self.map.value_offsets();
        let (start, end) = (*offsets.get(row)? as usize, *offsets.get(row + 1)? as usize);
        let guess = start + self.guess;
        if guess < end && self.names.value(guess) == key {
            return Some(guess);
        }
        let found = (start..end).find(|entry| self.names.value(*entry) == key)?;
        self.guess = found - start;
        Some(found)
    }
}

/// Arguments as arrays; a constant stays one row.
pub(crate) fn arrays(args: &ScalarFunctionArgs) -> Result<Option<[ArrayRef; 2]>> {
    let [map, key] = args.args.as_slice() else { return Ok(None) };
    let map = map.to_array(args.number_rows)?;
    let key = match key {
        ColumnarValue::Array(array) => Arc::clone(array),
        ColumnarValue::Scalar(value) => value.to_array()?,
    };
    Ok(Some([map, key]))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct MapGet {
    signature: Signature,
}

impl MapGet {
    fn new() -> Self {
        Self { signature: Signature::user_defined(Volatility::Immutable) }
    }
}

impl ScalarUDFImpl for MapGet {
    fn name(&self) -> &str {
        "map_get"
    }

    /// As written in SQL: the name of the output column.
    fn schema_name(&self, args: &[Expr]) -> Result<String> {
        match args {
            [map, Expr::Literal(key, _)] => Ok(format!("{}[{key}]", map.schema_name())),
            [map, key] => Ok(format!("{}[{}]", map.schema_name(), key.schema_name())),
            _ => plan_err!("map_get takes a map and a key"),
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, kinds: &[DataType]) -> Result<DataType> {
        match kinds.first().and_then(map_of_bytes) {
            Some(value) => Ok(value.clone()),
            None => plan_err!("map_get takes a map with keys of bytes"),
        }
    }

    fn coerce_types(&self, kinds: &[DataType]) -> Result<Vec<DataType>> {
        map_and_key(self.name(), kinds)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let arrays = arrays(&args)?;
        let finder = arrays.as_ref().and_then(|[map, key]| Finder::new(map, key));
        let Some(mut finder) = finder else { return exec_err!("map_get takes a map with keys of bytes") };
        let entries: UInt32Array =
            (0..finder.map.len()).map(|row| finder.find(row).map(|entry| entry as u32)).collect();
        Ok(ColumnarValue::Array(take(finder.map.values(), &entries, None)?))
    }
}
