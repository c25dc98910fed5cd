//! Functions that decode cell bytes as numbers and text.

use std::sync::Arc;

use arrow::array::{AsArray, BinaryArray, PrimitiveArray, StringArray};
use arrow::datatypes::{ArrowPrimitiveType, DataType, Float64Type, Int64Type};
use datafusion::common::exec_err;
use datafusion::error::Result;
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility};

use crate::argument_types::coerce_to_one_bytes;

/// A conversion of stored bytes into a number or text; its one argument is bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum BytesFunction {
    /// `to_int64(bytes)`: eight bytes, big-endian, two's complement. Other lengths are an error.
    ToInt64,
    /// `to_float64(bytes)`: eight bytes, big-endian, IEEE 754. Other lengths are an error.
    ToFloat64,
    /// `safe_convert_bytes_to_string(bytes)`: text, with U+FFFD for invalid UTF-8.
    ToText,
}

impl BytesFunction {
    pub(crate) fn function(self) -> Arc<ScalarUDF> {
        let signature = Signature::user_defined(Volatility::Immutable);
        Arc::new(ScalarUDF::new_from_impl(BytesUdf { function: self, signature }))
    }
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct BytesUdf {
    function: BytesFunction,
    signature: Signature,
}

impl ScalarUDFImpl for BytesUdf {
    fn name(&self) -> &str {
        match self.function {
            BytesFunction::ToInt64 => "to_int64",
            BytesFunction::ToFloat64 => "to_float64",
            BytesFunction::ToText => "safe_convert_bytes_to_string",
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(match self.function {
            BytesFunction::ToInt64 => DataType::Int64,
            BytesFunction::ToFloat64 => DataType::Float64,
            BytesFunction::ToText => DataType::Utf8,
        })
    }

    fn coerce_types(&self, arg_types: &[DataType]) -> Result<Vec<DataType>> {
        coerce_to_one_bytes(self.name(), arg_types)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let arrays = ColumnarValue::values_to_arrays(&args.args)?;
        let Some(bytes) = arrays.first().and_then(|array| array.as_binary_opt::<i32>()) else {
            return exec_err!("{} takes bytes", self.name());
        };
        Ok(ColumnarValue::Array(match self.function {
            BytesFunction::ToInt64 => Arc::new(decode_numbers::<Int64Type>(self.name(), bytes, i64::from_be_bytes)?),
            BytesFunction::ToFloat64 => {
                Arc::new(decode_numbers::<Float64Type>(self.name(), bytes, f64::from_be_bytes)?)
            }
            BytesFunction::ToText => {
                let texts = bytes.iter().map(|value| value.map(String::from_utf8_lossy));
                Arc::new(texts.collect::<StringArray>())
            }
        }))
    }
}

/// Decodes each value, big-endian, which must have exactly eight bytes; `function` is for the message.
fn decode_numbers<T: ArrowPrimitiveType>(
    function: &str,
    bytes: &BinaryArray,
    decode: impl Fn([u8; 8]) -> T::Native,
) -> Result<PrimitiveArray<T>> {
    bytes.iter().map(|value| value.map(|value| eight_bytes(function, value).map(&decode)).transpose()).collect()
}

fn eight_bytes(function: &str, value: &[u8]) -> Result<[u8; 8]> {
    match value.try_into() {
        Ok(bytes) => Ok(bytes),
        Err(_) => exec_err!(
            "{function} takes 8 bytes, not the {} of '{}'; a number kept as text is CAST(CAST(.. AS STRING) AS ..)",
            value.len(),
            value.get(..16).unwrap_or(value).escape_ascii()
        ),
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::{Array, ArrayRef, Float64Array, Int64Array};
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
    fn eight_bytes_decode_to_a_number() {
        let numbers = [0, 1, -1, i64::MAX, i64::MIN].map(i64::to_be_bytes);
        let mut values: Vec<Option<&[u8]>> = numbers.iter().map(|bytes| Some(bytes.as_slice())).collect();
        values.push(None);
        let read = call(&BytesFunction::ToInt64.function(), values).unwrap();
        let expected: Int64Array = [Some(0), Some(1), Some(-1), Some(i64::MAX), Some(i64::MIN), None].iter().collect();
        assert_eq!(read.as_ref(), &expected as &dyn Array);
        let read = call(&BytesFunction::ToFloat64.function(), vec![Some(&1.5f64.to_be_bytes()), None]).unwrap();
        assert_eq!(read.as_ref(), &Float64Array::from(vec![Some(1.5), None]) as &dyn Array);
    }

    #[test]
    fn error_for_other_lengths_shows_the_bytes() {
        for value in [b"".as_slice(), b"1234567", b"123456789"] {
            let error = call(&BytesFunction::ToInt64.function(), vec![Some(value)]).unwrap_err().to_string();
            assert!(error.contains(&format!("not the {} of", value.len())), "{error}");
        }
        assert!(
            call(&BytesFunction::ToFloat64.function(), vec![Some(b"34.18")]).unwrap_err().to_string().contains("34.18")
        );
    }

    #[test]
    fn invalid_utf8_is_replaced() {
        let read =
            call(&BytesFunction::ToText.function(), vec![Some(b"abc"), Some(b"a\xffb"), Some(b""), None]).unwrap();
        let expected = StringArray::from(vec![Some("abc"), Some("a\u{FFFD}b"), Some(""), None]);
        assert_eq!(read.as_ref(), &expected as &dyn Array);
    }
}
