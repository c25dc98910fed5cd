//! Column types in the syntax of job files.

use tidetable_layout::FieldType;

use crate::file::words::nearest;

/// All type names, as messages list them.
pub(crate) const TYPES: [&str; 8] = ["uint64", "int64", "float64", "decimal(p,s)", "text", "bool", "timestamp", "date"];

/// Names of the same types in other tools.
const ALIASES: [(&str, &str); 14] = [
    ("string", "text"),
    ("varchar", "text"),
    ("utf8", "text"),
    ("str", "text"),
    ("int", "int64"),
    ("integer", "int64"),
    ("bigint", "int64"),
    ("uint", "uint64"),
    ("float", "float64"),
    ("double", "float64"),
    ("real", "float64"),
    ("boolean", "bool"),
    ("datetime", "timestamp"),
    ("decimal", "decimal(10,2)"),
];

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum TypeError {
    /// A word that is no type; `near` is the type that it resembles.
    Unknown { near: Option<String> },
    /// Precision outside 1..=38, or a scale above the precision.
    Decimal,
}

/// Parses the type of a column as job files write it, such as `decimal(10,2)`.
///
/// # Errors
/// If it is unknown, or the precision of a decimal is out of range.
pub(crate) fn parse(text: &str) -> Result<FieldType, TypeError> {
    Ok(match text {
        "uint64" => FieldType::UInt64,
        "int64" => FieldType::Int64,
        "float64" => FieldType::Float64,
        "text" => FieldType::Text,
        "bool" => FieldType::Bool,
        "timestamp" => FieldType::Timestamp,
        "date" => FieldType::Date,
        _ => match text.strip_prefix("decimal(") {
            Some(rest) => decimal(rest).ok_or(TypeError::Decimal)?,
            None => return Err(TypeError::Unknown { near: meant(text) }),
        },
    })
}

fn meant(text: &str) -> Option<String> {
    let lower = text.to_lowercase();
    let alias = ALIASES.iter().find(|(alias, _)| *alias == lower).map(|(_, name)| (*name).to_owned());
    alias.or_else(|| nearest(text, TYPES))
}

fn decimal(rest: &str) -> Option<FieldType> {
    let (precision, scale) = rest.strip_suffix(')')?.split_once(',')?;
    let precision: u8 = precision.trim().parse().ok()?;
    let scale: u8 = scale.trim().parse().ok()?;
    let fits = (1..=38).contains(&precision) && scale <= precision;
    fits.then_some(FieldType::Decimal { precision, scale })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types() {
        assert_eq!(parse("decimal(10,2)"), Ok(FieldType::Decimal { precision: 10, scale: 2 }));
        assert_eq!(parse("decimal(38, 38)"), Ok(FieldType::Decimal { precision: 38, scale: 38 }));
        for bad in ["decimal(39,0)", "decimal(0,0)", "decimal(2,3)", "decimal(10)", "decimal(10,2", "decimal(a,b)"] {
            assert_eq!(parse(bad), Err(TypeError::Decimal), "{bad}");
        }
        assert_eq!(parse("string"), Err(TypeError::Unknown { near: Some("text".to_owned()) }));
        assert_eq!(parse("unit64"), Err(TypeError::Unknown { near: Some("uint64".to_owned()) }));
        for name in ["uint64", "int64", "float64", "text", "bool", "timestamp", "date", "decimal(10,2)"] {
            assert_eq!(parse(name).unwrap().to_string(), name);
        }
    }
}
