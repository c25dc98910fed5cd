//! The functions that the reference of GoogleSQL for Bigtable lists.

/// Names in lower case, ascending.
#[rustfmt::skip]
const FUNCTIONS: &[&str] = &[
    "abs", "acos", "acosh", "any_value", "approx_count_distinct", "approx_quantiles", "approx_top_count",
    "approx_top_sum", "array_agg", "array_concat", "array_concat_agg", "array_filter", "array_first",
    "array_includes", "array_includes_all", "array_includes_any", "array_is_distinct", "array_last",
    "array_last_n", "array_length", "array_offset", "array_offsets", "array_reverse", "array_slice",
    "array_to_string", "array_transform", "ascii", "asin", "asinh", "atan", "atan2", "atanh", "avg", "bit_and",
    "bit_count", "bit_or", "bit_xor", "byte_length", "ceil", "ceiling", "char_length", "character_length",
    "chr", "coalesce", "code_points_to_bytes", "code_points_to_string", "concat", "cos", "cosh",
    "cosine_distance", "cot", "coth", "count", "countif", "csc", "csch", "current_date", "current_timestamp",
    "date", "date_add", "date_diff", "date_from_unix_date", "date_sub", "date_trunc", "div", "ends_with",
    "euclidean_distance", "exp", "farm_fingerprint", "floor", "format", "format_date", "format_timestamp",
    "from_base32", "from_base64", "from_hex", "generate_array", "generate_date_array",
    "generate_timestamp_array", "greatest", "hll_count.extract", "hll_count.init", "hll_count.merge",
    "hll_count.merge_partial", "ieee_divide", "if", "ifnull", "initcap", "instr", "is_inf", "is_nan",
    "json_extract", "json_extract_scalar", "json_query", "json_query_array", "json_value", "json_value_array",
    "last_day", "least", "left", "length", "ln", "log", "log10", "logical_and", "logical_or", "lower", "lpad",
    "ltrim", "map_contains_key", "map_empty", "map_entries", "map_keys", "map_values", "max", "md5", "min",
    "mod", "normalize", "normalize_and_casefold", "nullif", "octet_length", "offset", "ordinal", "parse_date",
    "parse_timestamp", "pow", "power", "rand", "range_bucket", "regexp_contains", "regexp_extract",
    "regexp_extract_all", "regexp_instr", "regexp_replace", "regexp_substr", "repeat", "replace", "reverse",
    "right", "round", "rpad", "rtrim", "safe_add", "safe_convert_bytes_to_string", "safe_divide",
    "safe_multiply", "safe_negate", "safe_offset", "safe_ordinal", "safe_subtract", "sec", "sech", "sha1",
    "sha256", "sha512", "sign", "sin", "sinh", "soundex", "split", "sqrt", "starts_with", "stddev",
    "stddev_samp", "string", "string_agg", "strpos", "substr", "substring", "sum", "tan", "tanh", "timestamp",
    "timestamp_add", "timestamp_diff", "timestamp_micros", "timestamp_millis", "timestamp_seconds",
    "timestamp_sub", "timestamp_trunc", "to_base32", "to_base64", "to_code_points", "to_float32", "to_float64",
    "to_hex", "to_int32", "to_int64", "to_vector32", "to_vector64", "translate", "trim", "trunc", "unicode",
    "unix_date", "unix_micros", "unix_millis", "unix_seconds", "unnest", "unpack", "upper", "var_samp",
    "variance", "week",
];

/// Whether Bigtable documents a function of this name, in lower case.
pub(crate) fn is_documented(name: &str) -> bool {
    FUNCTIONS.binary_search(&name).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Parts of expressions and relations rather than functions.
    const OTHERS: [&str; 7] = ["offset", "ordinal", "safe_offset", "safe_ordinal", "unnest", "unpack", "week"];

    #[test]
    fn the_guide_tells_of_each_function() {
        let guide = include_str!("../../../../../docs/guide/bigtable-sql-locally.md");
        for name in FUNCTIONS.iter().filter(|name| !OTHERS.contains(name)) {
            assert!(guide.contains(&format!("`{}`", name.to_uppercase())), "{name}");
        }
    }

    #[test]
    fn names_ascend() {
        assert!(FUNCTIONS.is_sorted());
        assert!(is_documented("timestamp_trunc") && !is_documented("date_bin"));
    }
}
