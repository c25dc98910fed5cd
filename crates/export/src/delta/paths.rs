//! Paths of files as a Delta log spells them.

use std::borrow::Cow;

use percent_encoding::{AsciiSet, CONTROLS, percent_decode_str, utf8_percent_encode};

/// What is encoded in paths of a log, as in any URL. An equals sign is not: other engines remove files in the spelling that they
/// would write themselves, and some find no file that was added in another one.
const ENCODED: AsciiSet = CONTROLS
    .add(b' ')
    .add(b'"')
    .add(b'#')
    .add(b'%')
    .add(b'<')
    .add(b'>')
    .add(b'?')
    .add(b'[')
    .add(b'\\')
    .add(b']')
    .add(b'^')
    .add(b'`')
    .add(b'{')
    .add(b'|')
    .add(b'}');

/// A path of the log, as it is written there.
pub(crate) fn encoded(path: &str) -> String {
    utf8_percent_encode(path, &ENCODED).to_string()
}

/// A path of the log without percent encoding. Writers differ in what they encode.
pub(crate) fn decoded(path: &str) -> String {
    percent_decode_str(path).decode_utf8().map_or_else(|_| path.to_owned(), Cow::into_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_compared_without_their_encoding() {
        assert_eq!(decoded("dt%3D2018-01-01/a%20b.parquet"), "dt=2018-01-01/a b.parquet");
        assert_eq!(decoded("dt=2018-01-01/100%.parquet"), "dt=2018-01-01/100%.parquet");
        assert_eq!(decoded("%"), "%");
    }
}
