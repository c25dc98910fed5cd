//! Codes of parts of a year, such as `M01`, `Q1`, `H2`, and names of columns of such parts and of milliseconds.

use arrow::array::{Array, StringArray};

use crate::scaffold::identifier::identifier;

/// Names of columns of months, quarters and half-years.
pub(crate) const MONTH_NAMES: [&str; 13] =
    ["month", "mon", "mo", "mm", "monat", "mois", "mes", "mês", "mese", "maand", "månad", "måned", "miesiąc"];
pub(crate) const QUARTER_NAMES: [&str; 6] = ["quarter", "qtr", "qu", "quartal", "trimestre", "kwartaal"];
const HALF_NAMES: [&str; 6] = ["half", "half_year", "halfyear", "halbjahr", "semester", "semestre"];
/// Names of columns of codes that say themselves what part they are.
const PERIOD_NAMES: [&str; 5] = ["period", "periode", "période", "periodo", "período"];
/// Names of columns of other parts of a year, which are not put together with it.
const OTHER_NAMES: [&str; 12] = [
    "season",
    "week",
    "wk",
    "isoweek",
    "iso_week",
    "weeknum",
    "woche",
    "kw",
    "semaine",
    "semana",
    "settimana",
    "saison",
];

/// Names of columns of milliseconds.
const MILLI_NAMES: [&str; 9] =
    ["ms", "msec", "msecs", "milli", "millis", "millitm", "millisecond", "milliseconds", "millisekunden"];

/// The months of a column of codes.
#[derive(Debug)]
pub(crate) struct YearCodes {
    /// The first month of the part; `None` for null and for the code of a whole year, such as `M13`.
    pub months: Vec<Option<i64>>,
    /// SQL for the month.
    pub sql: String,
    /// The first code of a whole year.
    pub whole_year: Option<String>,
}

impl YearCodes {
    /// The months of codes of one letter with a number behind it: `M01` to `M12`, `Q1` to `Q4`, `S01` and `H1` of half-years.
    /// The next number, as in `M13`, is of the whole year.
    pub fn of(name: &str, text: &StringArray) -> Option<Self> {
        let letter = text.iter().flatten().next()?.chars().next()?.to_ascii_uppercase();
        let parts = match letter {
            'M' => 12,
            'Q' | 'T' => 4,
            'S' | 'H' => 2,
            _ => return None,
        };
        let size = 12 / parts;

        let mut months = Vec::with_capacity(text.len());
        let mut whole_year = None;
        for value in text {
            let Some(code) = value else {
                months.push(None);
                continue;
            };
            let number = code.trim().strip_prefix([letter, letter.to_ascii_lowercase()])?;
            let is_short = (1..=2).contains(&number.len()) && number.bytes().all(|byte| byte.is_ascii_digit());
            let number: i64 = number.parse().ok().filter(|number| is_short && (1..=parts + 1).contains(number))?;
            if number > parts {
                whole_year.get_or_insert(code.to_owned());
            }
            months.push((number <= parts).then_some(number * size - (size - 1)));
        }

        let number = format!("cast(substr(trim({}), 2) as int)", identifier(name));
        let number = if whole_year.is_some() { format!("nullif({number}, {})", parts + 1) } else { number };
        let sql = if size == 1 { number } else { format!("{number} * {size} - {}", size - 1) };
        Some(Self { months, sql, whole_year })
    }
}

/// Whether a column of this name holds months, quarters or half-years, or periods that say which they are.
pub(crate) fn is_named_part(name: &str) -> bool {
    let name = name.trim().to_lowercase();
    [&MONTH_NAMES[..], &QUARTER_NAMES, &HALF_NAMES, &PERIOD_NAMES].iter().any(|names| names.contains(&name.as_str()))
}

/// Whether a column of this name holds a part of a year, also one that is not put together with it, such as a week.
pub(crate) fn is_named_finer(name: &str) -> bool {
    is_named_part(name) || OTHER_NAMES.contains(&name.trim().to_lowercase().as_str())
}

/// Whether a column of this name holds milliseconds.
pub(crate) fn is_named_millis(name: &str) -> bool {
    MILLI_NAMES.contains(&name.trim().to_lowercase().as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_months() {
        let months =
            |values: &[&str]| YearCodes::of("period", &StringArray::from(values.to_vec())).map(|codes| codes.months);
        assert_eq!(months(&["M01", "M12", "M13"]), Some(vec![Some(1), Some(12), None]));
        assert_eq!(months(&["Q1", "q4", "Q5"]), Some(vec![Some(1), Some(10), None]));
        assert_eq!(months(&["S01", "S02"]), Some(vec![Some(1), Some(7)]));
        for other in [&["M01", "Q1"][..], &["M14"], &["S04"], &["M"], &["M001"], &["A01"], &["Mai"]] {
            assert_eq!(months(other), None, "{other:?}");
        }
        let codes = YearCodes::of("Period", &StringArray::from(vec!["Q01", "Q05"])).unwrap();
        assert_eq!(codes.sql, "nullif(cast(substr(trim(\"Period\"), 2) as int), 5) * 3 - 2");
        assert_eq!(codes.whole_year.as_deref(), Some("Q05"));
    }
}
