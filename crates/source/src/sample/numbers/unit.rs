//! Numbers that are written with their unit: `12.5%`, `$3.20`, `21 °C`.

use crate::value::blanks::trimmed_text;

/// Signs of currencies, which stand before a number.
const CURRENCIES: &str = "$€£¥₹₩₽";
/// Most characters of a unit: what is longer is a text with a number in it.
const LONGEST: usize = 8;

/// What all values of a column have before or behind a number in plain form, if it is a unit. Codes such as `12A` have none.
pub(in crate::sample) fn unit_of<'a>(mut values: impl Iterator<Item = &'a str> + Clone) -> Option<String> {
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
}
