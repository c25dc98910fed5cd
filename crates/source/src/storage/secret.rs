//! A value that nobody is shown, such as the key of a bucket.

use std::fmt;

/// A password, a key, a token. It cannot be written by accident: neither `Debug` nor `Display` shows it, and it has no
/// form that could be stored.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Keeps `value`, which only [`Self::expose`] gives back.
    pub fn new(value: String) -> Self {
        Self(value)
    }

    /// The value, for whoever it is meant for.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[secret]")
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::Secret;

    #[test]
    fn nobody_is_shown_a_secret() {
        let secret = Some(Secret::new("hush".to_owned()));
        assert_eq!(format!("{secret:?}"), "Some([secret])");
        assert_eq!(secret.map(|secret| secret.to_string()).as_deref(), Some("[secret]"));
    }
}
