//! What the names of columns say.

/// The words of a name, in lower case: `deviceId`, `device_id` and `DEVICE-ID` are `device`, `id`.
fn words(name: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut last: Option<char> = None;
    for letter in name.chars() {
        let begins = match last {
            None => true,
            Some(before) => !before.is_alphanumeric() || (before.is_lowercase() && letter.is_uppercase()),
        };
        last = Some(letter);
        if !letter.is_alphanumeric() {
            continue;
        }
        match words.last_mut().filter(|_| !begins) {
            Some(word) => word.extend(letter.to_lowercase()),
            None => words.push(letter.to_lowercase().collect()),
        }
    }
    words
}

/// The unit of time that a column's name says it holds, and a time format with its year.
pub(crate) fn calendar_unit(name: &str) -> Option<(&'static str, &'static str)> {
    const UNITS: [(&str, &str); 7] = [
        ("week", "%G-W%V"),
        ("month", "%Y%m"),
        ("quarter", "%Y%m"),
        ("weekday", "%Y%m%d"),
        ("day", "%Y%m%d"),
        ("hour", "%Y%m%d%H"),
        ("minute", "%Y%m%d%H%M"),
    ];
    let last = words(name).pop()?;
    UNITS.into_iter().find(|(unit, _)| *unit == last)
}

/// Whether the name says that the column tells one customer of a shared table from another.
pub(crate) fn is_tenant(name: &str) -> bool {
    const TENANTS: [&str; 8] =
        ["tenant", "customer", "client", "account", "org", "organisation", "organization", "company"];
    words(name).first().is_some_and(|word| TENANTS.contains(&word.as_str()))
}

/// What is personal in a column, by its name.
pub(crate) fn personal(name: &str) -> Option<&'static str> {
    const SINGLE: [(&str, &str); 16] = [
        ("email", "a mail address"),
        ("mail", "a mail address"),
        ("phone", "a phone number"),
        ("mobile", "a phone number"),
        ("telephone", "a phone number"),
        ("iban", "a bank account"),
        ("ssn", "a social security number"),
        ("passport", "a passport number"),
        ("surname", "a name of a person"),
        ("firstname", "a name of a person"),
        ("lastname", "a name of a person"),
        ("fullname", "a name of a person"),
        ("person", "a person"),
        ("birthday", "a date of birth"),
        ("birthdate", "a date of birth"),
        ("ip", "an address of a person's device"),
    ];
    const PAIRS: [(&str, &str, &str); 7] = [
        ("first", "name", "a name of a person"),
        ("last", "name", "a name of a person"),
        ("full", "name", "a name of a person"),
        ("card", "number", "a card number"),
        ("credit", "card", "a card number"),
        ("date", "birth", "a date of birth"),
        ("birth", "date", "a date of birth"),
    ];

    let words = words(name);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    if let Some((_, what)) = SINGLE.into_iter().find(|(word, _)| words.contains(word)) {
        return Some(what);
    }
    let pair = PAIRS.into_iter().find(|(one, other, _)| words.contains(one) && words.contains(other));
    pair.map(|(_, _, what)| what)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_names() {
        assert_eq!(words("deviceId"), ["device", "id"]);
        assert_eq!(words("DEVICE-ID/x"), ["device", "id", "x"]);
        assert_eq!(personal("user_email"), Some("a mail address"));
        assert_eq!(personal("dateOfBirth"), Some("a date of birth"));
        assert_eq!(personal("ship"), None);
        assert_eq!(calendar_unit("iso_week").map(|(unit, _)| unit), Some("week"));
        assert_eq!(calendar_unit("weekly"), None);
        assert!(is_tenant("tenant_id") && !is_tenant("sub_tenant") && !is_tenant("clientele"));
    }
}
