//! Numbers in text: with their unit as in `12.5%`, `$1,234.50` and `21 °C`, or with their sign as in `1.5-` and `(1.5)`.

use crate::value::blanks::trimmed_text;

/// Signs of currencies, which stand before a number.
const CURRENCIES: &str = "$€£¥₹₩₽";
/// Most characters of a unit: what is longer is a text with a number in it.
const LONGEST: usize = 8;

/// How the numbers of a column of text are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SignForm {
    /// A minus stands behind the number.
    Trailing,
    /// Numbers below 0 stand in parentheses.
    Parentheses,
}

/// Numbers of a column of text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TextNumbers {
    /// All values have this before or behind a number.
    Unit {
        /// The unit.
        unit: String,
        /// Whether commas separate groups of thousands.
        has_thousands: bool,
        /// Whether a comma precedes the fraction.
        has_decimal_comma: bool,
    },
    /// Some values are numbers below 0 with another sign than a minus before them; with the first of these.
    Sign(SignForm, String),
    /// Plain numbers of a file with types, with a decimal comma or point; with the first.
    Plain(String),
}

/// The numbers that all values of a column of text are, if they are not plain ones.
pub(in crate::sample) fn text_numbers<'a>(values: impl Iterator<Item = &'a str> + Clone) -> Option<TextNumbers> {
    if let Some(unit) = unit_of(values.clone()) {
        return Some(TextNumbers::Unit { unit, has_thousands: false, has_decimal_comma: false });
    }
    if let Some(form) = sign_form(values.clone()) {
        return Some(form);
    }
    for has_thousands in [true, false] {
        let plain: Option<Vec<String>> = values.clone().map(|value| without_commas(value, has_thousands)).collect();
        let Some(plain) = plain else { continue };
        let has_commas = values.clone().any(|value| value.contains(','));
        if let Some(unit) = unit_of(plain.iter().map(String::as_str)).filter(|_| has_commas) {
            return Some(TextNumbers::Unit { unit, has_thousands, has_decimal_comma: !has_thousands });
        }
    }
    None
}

/// Plain numbers of a file that has types, some with a fraction.
pub(in crate::sample) fn plain_numbers<'a>(mut values: impl Iterator<Item = &'a str> + Clone) -> Option<TextNumbers> {
    let first = values.clone().find(|value| value.contains(['.', ',']))?;
    let mark = if first.contains(',') { ',' } else { '.' };
    let other = if mark == ',' { '.' } else { ',' };
    let are_numbers = values.all(|value| {
        let is_number = value.replacen(mark, ".", 1).parse::<f64>().is_ok_and(f64::is_finite);
        is_number && !value.contains(other)
    });
    are_numbers.then(|| TextNumbers::Plain(first.to_owned()))
}

/// A value without its separators of thousands, or with a point for its decimal comma; `None` if its commas are something else.
fn without_commas(value: &str, has_thousands: bool) -> Option<String> {
    if !has_thousands {
        return (!value.contains('.') && value.matches(',').count() < 2).then(|| value.replace(',', "."));
    }
    let mut groups = value.split(',');
    groups.next()?;
    let is_group = |group: &str| group.bytes().take_while(u8::is_ascii_digit).count() == 3;
    groups.all(is_group).then(|| value.replace(',', ""))
}

/// The sign that numbers below 0 have, if all values are numbers and some of them are so.
fn sign_form<'a>(values: impl Iterator<Item = &'a str> + Clone) -> Option<TextNumbers> {
    let inner = |value: &'a str, form: SignForm| match form {
        SignForm::Trailing => value.strip_suffix('-'),
        SignForm::Parentheses => value.strip_prefix('(').and_then(|rest| rest.strip_suffix(')')),
    };
    let is_number = |text: &str| {
        let has_digit = text.starts_with(|letter: char| letter.is_ascii_digit() || letter == '.');
        has_digit && text.chars().all(is_of_number) && text.parse::<f64>().is_ok()
    };
    [SignForm::Trailing, SignForm::Parentheses].into_iter().find_map(|form| {
        let first = values.clone().find(|value| inner(value, form).is_some_and(is_number))?;
        // Where all are so, it is how the column is written.
        values.clone().find(|value| is_number(value))?;
        let are_numbers = values.clone().all(|value| is_number(inner(value, form).unwrap_or(value)));
        are_numbers.then(|| TextNumbers::Sign(form, first.to_owned()))
    })
}

/// What all values of a column have before or behind a number in plain form, if it is a unit. Codes such as `12A` have none.
fn unit_of<'a>(mut values: impl Iterator<Item = &'a str> + Clone) -> Option<String> {
    let first = values.clone().next()?;
    let before = first.split(is_of_number).next()?;
    let behind = first.rsplit(|c: char| c.is_ascii_digit()).next()?;
    let is_currency = !before.is_empty() && before.chars().all(|c| CURRENCIES.contains(c) || c == ' ');
    let (unit, is_likely) = match (before.is_empty(), behind.is_empty()) {
        (false, true) if is_currency => (before, true),
        (true, false) => (behind, behind.starts_with(|c: char| !c.is_ascii_alphanumeric())),
        _ => return None,
    };
    if unit.chars().count() > LONGEST {
        return None;
    }

    let has_fraction = values.clone().any(|value| value.contains('.'));
    let are_numbers = values.all(|value| {
        let number = value.strip_prefix(before).and_then(|rest| rest.strip_suffix(behind));
        number.is_some_and(|number| number.chars().all(is_of_number) && number.parse::<f64>().is_ok())
    });
    (are_numbers && (is_likely || has_fraction)).then(|| trimmed_text(unit).to_owned())
}

fn is_of_number(letter: char) -> bool {
    letter.is_ascii_digit() || matches!(letter, '-' | '+' | '.')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_of_columns() {
        let unit = |values: &[&str]| unit_of(values.iter().copied());
        assert_eq!(unit(&["12.5%", "-3%"]).as_deref(), Some("%"));
        assert_eq!(unit(&["$3.20", "$0"]).as_deref(), Some("$"));
        assert_eq!(unit(&["€ 3.20", "€ 0"]).as_deref(), Some("€"));
        assert_eq!(unit(&["21 °C", "-3 °C"]).as_deref(), Some("°C"));
        assert_eq!(unit(&["1.5kW", "2kW"]).as_deref(), Some("kW"));
        for other in
            [&["12A", "13A"][..], &["m1", "m2"], &["12%", "x%"], &["1.5kW", "2W"], &["v1.1", "v1.2"], &["1.1.2 a"], &[]]
        {
            assert_eq!(unit(other), None, "{other:?}");
        }
    }

    #[test]
    fn numbers_with_commas_and_signs() {
        let found = |values: &[&str]| text_numbers(values.iter().copied());
        let unit = |unit: &str, has_thousands: bool| {
            Some(TextNumbers::Unit { unit: unit.to_owned(), has_thousands, has_decimal_comma: !has_thousands })
        };
        assert_eq!(found(&["$1,234.50", "$2.25"]), unit("$", true));
        assert_eq!(found(&["1,5 kWh", "12,25 kWh"]), unit("kWh", false));
        assert_eq!(found(&["1.5-", "2.5"]), Some(TextNumbers::Sign(SignForm::Trailing, "1.5-".to_owned())));
        assert_eq!(found(&["2.5", "(1.5)"]), Some(TextNumbers::Sign(SignForm::Parentheses, "(1.5)".to_owned())));
        for other in [
            &["1-5", "6-10"][..],
            &["12-", "x"],
            &["a,b", "c"],
            &["1,5 kWh", "1.5 kWh"],
            &["-", "5"],
            &["(1.5)", "(2)"],
        ] {
            assert_eq!(found(other), None, "{other:?}");
        }
        let plain = |values: &[&str]| plain_numbers(values.iter().copied());
        assert_eq!(plain(&["7", "0,5"]), Some(TextNumbers::Plain("0,5".to_owned())));
        assert_eq!((plain(&["7", "8"]), plain(&["0,5", "1.5"]), plain(&["1,5,6"])), (None, None, None));
    }
}
