//! What is left out, and why.

/// A candidate that a rule refuses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    /// Its name.
    pub name: String,
    /// Its row key.
    pub row_key: String,
    /// The rule.
    pub rule: &'static str,
    /// What is wrong, with the number.
    pub message: String,
}
