//! Codes of the functions that plans hold but no query names, so that another process finds them.

use std::sync::Arc;

use datafusion::logical_expr::ScalarUDF;

use crate::casts::{decimal_floats, rounded};
use crate::passing::one_row::{is_one_row, one_row};
use crate::passing::opaque::{is_opaque, opaque};
use crate::{chain, checked, conversion, map_get, times};

/// The code of a function that only plans hold; `None` for one that is found by its name.
pub fn code_of_function(function: &ScalarUDF) -> Option<String> {
    checked::code(function)
        .or_else(|| chain::code(function))
        .or_else(|| map_get::is_map_get(function).then(|| MAP_GET.to_owned()))
        .or_else(|| is_one_row(function).then(|| ONE_ROW.to_owned()))
        .or_else(|| is_opaque(function).then(|| OPAQUE.to_owned()))
        .or_else(|| times::is_as_nanos(function).then(|| AS_NANOS.to_owned()))
        .or_else(|| conversion::code::<rounded::Rounded>(function))
        .or_else(|| conversion::code::<decimal_floats::NearestFloat>(function))
        .or_else(|| conversion::code::<times::TextToTime>(function))
        .or_else(|| conversion::code::<times::zones::LocalToInstant>(function))
}

/// The function of a code.
pub fn function_of_code(code: &str) -> Option<Arc<ScalarUDF>> {
    match code {
        MAP_GET => Some(map_get::function()),
        AS_NANOS => Some(times::as_nanos_function()),
        ONE_ROW => Some(one_row()),
        OPAQUE => Some(opaque()),
        _ => checked::of_code(code)
            .or_else(|| chain::of_code(code))
            .or_else(|| conversion::of_code::<rounded::Rounded>(code))
            .or_else(|| conversion::of_code::<decimal_floats::NearestFloat>(code))
            .or_else(|| conversion::of_code::<times::TextToTime>(code))
            .or_else(|| conversion::of_code::<times::zones::LocalToInstant>(code)),
    }
}

const MAP_GET: &str = "map_get";
const AS_NANOS: &str = "as_nanos";
const ONE_ROW: &str = "one_row";
const OPAQUE: &str = "opaque";

#[cfg(test)]
mod tests {
    use datafusion::arrow::datatypes::{DataType, TimeUnit};

    use super::*;

    #[test]
    fn codes_round_trip() {
        let to = DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()));
        let mut codes = ["+", "-", "*", "negate"].map(|op| format!("checked {op}")).to_vec();
        codes.extend([MAP_GET, AS_NANOS, ONE_ROW, OPAQUE].map(str::to_owned));
        codes.extend(["rounded", "nearest_float", "text_as_time", "by_clocks"].map(|name| format!("{name} true {to}")));
        codes.push("chain\nDecimal128(12, 2)\nchecked +\n-\tDecimal128(20, 0)\tDecimal128(12, 2)\n||".to_owned());
        for code in codes {
            assert_eq!(function_of_code(&code).and_then(|function| code_of_function(&function)), Some(code));
        }
        assert!(function_of_code("sum").is_none());
    }
}
