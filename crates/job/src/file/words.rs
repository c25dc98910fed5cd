//! "Did you mean": the known name most similar to an unknown one.

/// The candidate most similar to `wanted`, if similar enough. Ignores case.
pub fn nearest<'c>(wanted: &str, candidates: impl IntoIterator<Item = &'c str>) -> Option<String> {
    let wanted = wanted.to_lowercase();
    let allowed = (wanted.chars().count() / 3).max(1);
    candidates
        .into_iter()
        .map(|name| (strsim::damerau_levenshtein(&wanted, &name.to_lowercase()), name))
        .filter(|(distance, name)| *distance <= allowed && *distance < name.chars().count())
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name.to_owned())
}

/// The names in backticks, separated by commas, for messages.
pub fn listed<T: AsRef<str>>(names: &[T]) -> String {
    let quoted: Vec<_> = names.iter().map(|name| format!("`{}`", name.as_ref())).collect();
    quoted.join(", ")
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn near_and_far() {
        assert_eq!(nearest("metre", ["kwh", "meter", "ts"]), Some("meter".to_owned()));
        assert_eq!(nearest("europe/pariss", ["UTC", "Europe/Paris"]), Some("Europe/Paris".to_owned()));
        assert_eq!(nearest("x", ["y", "z"]), None);
        assert_eq!(nearest("nothing", ["UTC"]), None);
    }
}
