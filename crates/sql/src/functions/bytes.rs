//! What cells of eight bytes and cells of text hold.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, BinaryArray, Float64Array, Int64Array, StringArray};
use arrow::datatypes::DataType;
use datafusion::common::exec_err;
use datafusion::error::Result;
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility};

use crate::functions::argument_types::one_of_bytes;

/// `to_int64(bytes)`: eight bytes, big-endian, two's complement. Other lengths are an error.
pub(crate) fn to_int64() -> Arc<ScalarUDF> {
    function("to_int64", DataType::Int64, |bytes| {
        let numbers = bytes.iter().map(|value| value.map(|value| Ok(i64::from_be_bytes(eight("to_int64", value)?))));
        let numbers: Int64Array = numbers.map(Option::transpose).collect::<Result<_>>()?;
        Ok(Arc::new(numbers))
    })
}

/// `to_float64(bytes)`: eight bytes, big-endian, IEEE 754. Other lengths are an error.
pub(crate) fn to_float64() -> Arc<ScalarUDF> {
    function("to_float64", DataType::Float64, |bytes| {
        let numbers = bytes.iter().map(|value| value.map(|value| Ok(f64::from_be_bytes(eight("to_float64", value)?))));
        let numbers: Float64Array = numbers.map(Option::transpose).collect::<Result<_>>()?;
        Ok(Arc::new(numbers))
    })
}

/// `safe_convert_bytes_to_string(bytes)`: as text, with U+FFFD for what is not UTF-8.
pub(crate) fn safe_convert_bytes_to_string() -> Arc<ScalarUDF> {
    function("safe_convert_bytes_to_string", DataType::Utf8, |bytes| {
        let texts: StringArray = bytes.iter().map(|value| value.map(String::from_utf8_lossy)).collect();
        Ok(Arc::new(texts))
    })
}

fn eight(function: &str, value: &[u8]) -> Result<[u8; 8]> {
    match value.try_into() {
        Ok(bytes) => Ok(bytes),
        Err(_) => exec_err!(
            "{function} takes 8 bytes, not the {} of '{}'; a number kept as text is CAST(CAST(.. AS STRING) AS ..)",
            value.len(),
            value.get(..16).unwrap_or(value).escape_ascii()
        ),
    }
}

type Convert = fn(&BinaryArray) -> Result<ArrayRef>;

fn function(name: &'static str, returns: DataType, convert: Convert) -> Arc<ScalarUDF> {
    let signature = Signature::user_defined(Volatility::Immutable);
    Arc::new(ScalarUDF::new_from_impl(OfBytes { name, returns, convert: ByName(convert), signature }))
}

/// A function of bytes.
#[derive(Debug, PartialEq, Eq, Hash)]
struct OfBytes {
    name: &'static str,
    returns: DataType,
    convert: ByName,
    signature: Signature,
}

/// The work of a function, whose name tells it from the others.
#[derive(Clone, Copy)]
struct ByName(Convert);

impl std::fmt::Debug for ByName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("convert")
    }
}

impl PartialEq for ByName {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for ByName {}

impl std::hash::Hash for ByName {
    fn hash<H: std::hash::Hasher>(&self, _: &mut H) {}
}

impl ScalarUDFImpl for OfBytes {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(self.returns.clone())
    }

    fn coerce_types(&self, kinds: &[DataType]) -> Result<Vec<DataType>> {
        one_of_bytes(self.name, kinds)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let arrays = ColumnarValue::values_to_arrays(&args.args)?;
        let Some(bytes) = arrays.first().and_then(|array| array.as_binary_opt::<i32>()) else {
            return exec_err!("{} takes bytes", self.name);
        };
        Ok(ColumnarValue::Array((self.convert.0)(bytes)?))
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::Array;
    use arrow::datatypes::Field;
    use datafusion::config::ConfigOptions;

    use super::*;

    fn call(function: &ScalarUDF, values: Vec<Option<&[u8]>>) -> Result<ArrayRef> {
        let bytes: ArrayRef = Arc::new(values.into_iter().collect::<BinaryArray>());
        let rows = bytes.len();
        let args = ScalarFunctionArgs {
            args: vec![ColumnarValue::Array(bytes)],
            arg_fields: vec![Arc::new(Field::new("a", DataType::Binary, true))],
            number_rows: rows,
            return_field: Arc::new(Field::new("r", function.return_type(&[DataType::Binary])?, true)),
            config_options: Arc::new(ConfigOptions::new()),
        };
        function.invoke_with_args(args)?.into_array(rows)
    }

    #[test]
    fn eight_bytes_are_a_number() {
        let numbers = [0, 1, -1, i64::MAX, i64::MIN].map(i64::to_be_bytes);
        let mut values: Vec<Option<&[u8]>> = numbers.iter().map(|bytes| Some(bytes.as_slice())).collect();
        values.push(None);
        let read = call(&to_int64(), values).unwrap();
        let expected: Int64Array = [Some(0), Some(1), Some(-1), Some(i64::MAX), Some(i64::MIN), None].iter().collect();
        assert_eq!(read.as_ref(), &expected as &dyn Array);
        let read = call(&to_float64(), vec![Some(&1.5f64.to_be_bytes()), None]).unwrap();
        assert_eq!(read.as_ref(), &Float64Array::from(vec![Some(1.5), None]) as &dyn Array);
    }

    #[test]
    fn other_lengths_are_an_error_that_shows_the_bytes() {
        for value in [b"".as_slice(), b"1234567", b"123456789"] {
            let error = call(&to_int64(), vec![Some(value)]).unwrap_err().to_string();
            assert!(error.contains(&format!("not the {} of", value.len())), "{error}");
        }
        assert!(call(&to_float64(), vec![Some(b"34.18")]).unwrap_err().to_string().contains("34.18"));
    }

    #[test]
    fn what_is_no_utf8_is_replaced() {
        let read = call(&safe_convert_bytes_to_string(), vec![Some(b"abc"), Some(b"a\xffb"), Some(b""), None]).unwrap();
        let expected = StringArray::from(vec![Some("abc"), Some("a\u{FFFD}b"), Some(""), None]);
        assert_eq!(read.as_ref(), &expected as &dyn Array);
    }
}
