//! The features of cargo that this build has.

use std::sync::LazyLock;

/// Each feature, and whether this build has it.
const FEATURES: [(&str, bool); 4] = [
    ("bigtable", cfg!(feature = "bigtable")),
    ("cluster", cfg!(feature = "cluster")),
    ("jemalloc", cfg!(feature = "jemalloc")),
    ("postgres", cfg!(feature = "postgres")),
];

/// The version with the features, for `--version`: commands of a feature that is missing only refuse.
pub static VERSION: LazyLock<String> = LazyLock::new(|| version(&FEATURES));

fn version(features: &[(&str, bool)]) -> String {
    let built: Vec<&str> = features.iter().filter(|(_, is_built)| *is_built).map(|(name, _)| *name).collect();
    let built = if built.is_empty() { "none".to_owned() } else { built.join(", ") };
    format!("{} (features: {built})", env!("CARGO_PKG_VERSION"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_names_what_is_built() {
        let number = env!("CARGO_PKG_VERSION");
        assert_eq!(version(&[("a", true), ("b", false), ("c", true)]), format!("{number} (features: a, c)"));
        assert_eq!(version(&[("a", false)]), format!("{number} (features: none)"));
        assert_eq!(VERSION.contains("cluster"), cfg!(feature = "cluster"));
    }
}
