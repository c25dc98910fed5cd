//! What is left out, and why.

/// A candidate that a rule refuses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    /// Name of the table it would be.
    pub name: String,
    /// Template of its row key.
    pub row_key: String,
    /// Id of the first rule that refuses it, such as `R1`.
    pub rule: &'static str,
    /// What is wrong, with the number.
    pub message: String,
}
