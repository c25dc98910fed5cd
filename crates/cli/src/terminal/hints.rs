//! Commands that messages name, such as `tidetable retry RUN`. Crates write them without the options that say where the store
//! is; here they get those that this command was called with, so that they can be pasted.

use std::borrow::Cow;
use std::sync::OnceLock;

use tidetable_job::shell_word;

/// How a command begins in a message.
const COMMAND: &str = "tidetable ";

/// The options of the command line that say where to work, each with a space after it.
static PLACE: OnceLock<String> = OnceLock::new();

/// Sets the options that every command in a message gets, such as `["-C", "/srv/meters", "--root", "data"]`. Only the first
/// call counts.
pub(crate) fn set_place(words: &[String]) {
    let words = words.iter().map(|word| format!("{} ", shell_word(word)));
    // Set by the process once, when it has read its command line.
    let _ = PLACE.set(words.collect());
}

/// The options of [`set_place`], each with a space after it; empty if none was given.
pub(crate) fn place() -> &'static str {
    PLACE.get().map_or("", String::as_str)
}

/// Completes the commands of a text: those in backticks, and those that stand on an indented line of their own.
pub(crate) fn completed(text: &str) -> Cow<'_, str> {
    with_place(text, place())
}

fn with_place<'a>(text: &'a str, place: &str) -> Cow<'a, str> {
    if place.is_empty() || !text.contains(COMMAND) {
        return Cow::Borrowed(text);
    }

    let mut shown = String::with_capacity(text.len() + 2 * place.len());
    let mut rest = text;
    while let Some(start) = rest.find(COMMAND) {
        let (before, after) = rest.split_at(start + COMMAND.len());
        shown.push_str(before);
        rest = after;

        let so_far = &shown[..shown.len() - COMMAND.len()];
        if begins_command(so_far) && !has_place(rest) {
            shown.push_str(place);
        }
    }
    shown.push_str(rest);
    Cow::Owned(shown)
}

/// Whether a command begins after this text.
fn begins_command(before: &str) -> bool {
    let line = before.rsplit('\n').next().unwrap_or_default();
    line.ends_with('`') || (line.len() >= 2 && line.chars().all(|c| c == ' '))
}

/// Whether the words of a command, up to its end, need no place: they have one, or begin with an option such as `--version`.
fn has_place(words: &str) -> bool {
    let end = words.find(['`', '\n']).unwrap_or(words.len());
    words.starts_with('-') || words[..end].split(' ').any(|word| word == "--root")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_get_the_place_that_was_given() {
        let shown = |text| with_place(text, "-C /srv --root s3://x/y ").into_owned();
        assert_eq!(
            shown("`tidetable retry 01R` tries again"),
            "`tidetable -C /srv --root s3://x/y retry 01R` tries again"
        );
        assert_eq!(shown("next:\n  tidetable run j"), "next:\n  tidetable -C /srv --root s3://x/y run j");
        assert_eq!(shown("`tidetable run a`, `tidetable run b`").matches("--root").count(), 2);
        for unchanged in
            ["`tidetable --version`", "`tidetable run --root z j`", "the tidetable of today", "tidetable 1.0"]
        {
            assert_eq!(shown(unchanged), unchanged);
        }
        assert!(matches!(with_place("`tidetable run j`", ""), Cow::Borrowed(_)));
    }
}
