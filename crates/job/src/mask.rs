//! Hides what may be secret in the text of a file, of which messages show lines: values of hooks and of keys that take
//! secrets, what follows the host of a URL, and characters that steer a terminal. A file that is not TOML is read, too, as far
//! as it can be.

use std::ops::Range;

use tidetable_source::is_url;

/// Keys that hold secrets, wherever they stand: those of `[hooks]`, and what is refused in plain text.
const SECRET_KEYS: [&str; 7] = ["heartbeat", "success", "warning", "failure", "interrupt", "finish", "error"];
/// Parts of the names of other keys that hold secrets.
const SECRET_PARTS: [&str; 6] = ["secret", "token", "password", "passwd", "account_key", "service_account"];
const PLAIN_HOOKS: [&str; 1] = ["timeout"];
/// What a value that says where a secret is begins with.
const REFERENCES: [&str; 2] = ["env", "file"];

/// Schemes of URLs whose paths are no secrets.
const BUCKETS: [&str; 9] = ["s3", "s3a", "gs", "az", "adl", "azure", "abfs", "abfss", "file"];

/// `text` with the same lines and lengths, where stars stand for what may be secret.
pub(crate) fn masked(text: &str) -> String {
    let mut bytes = text.as_bytes().to_vec();
    let mut section = String::new();
    let mut at = 0;
    while at < text.len() {
        let end = line_end(text, at);
        let line = text[at..end].trim();

        if line.starts_with('[') && !line.contains('=') {
            section = name_of(line.trim_matches(['[', ']']));
            at = end;
            continue;
        }

        at = match text[at..end].find('=').map(|found| at + found) {
            Some(equals) if !line.starts_with('#') => {
                let end = value_end(text, equals + 1);
                let key = name_of(&text[at..equals]);
                hide_value(text, &mut bytes, equals + 1..end, Keys { section: &section, key: &key });
                end
            }
            _ => end,
        };
    }

    hide_urls(text, &mut bytes);
    hide_controls(text, &mut bytes);
    // Whole characters were replaced, so this is UTF-8; if not, nothing is shown.
    String::from_utf8(bytes).unwrap_or_else(|_| text.chars().map(|c| if c == '\n' { c } else { '*' }).collect())
}

#[derive(Debug, Clone, Copy)]
struct Keys<'a> {
    section: &'a str,
    key: &'a str,
}

impl Keys<'_> {
    fn last(&self) -> &str {
        self.key.rsplit('.').next().unwrap_or_default()
    }

    fn are_plain(&self) -> bool {
        PLAIN_HOOKS.contains(&self.last())
    }

    fn are_secret(&self) -> bool {
        let mut parts = self.section.split('.').chain(self.key.split('.'));
        let of_hooks = parts.any(|part| part == "hooks") && !self.are_plain();
        let last = self.last();
        of_hooks || SECRET_KEYS.contains(&last) || SECRET_PARTS.iter().any(|part| last.contains(part))
    }
}

/// A dotted name without blanks and quotes.
fn name_of(written: &str) -> String {
    written.chars().filter(|c| !c.is_whitespace() && !matches!(c, '"' | '\'')).collect()
}

fn line_end(text: &str, from: usize) -> usize {
    text[from..].find('\n').map_or(text.len(), |found| from + found + 1)
}

/// The end of a value: of its line, or of the line on which its last bracket or its triple quotes close.
fn value_end(text: &str, from: usize) -> usize {
    let mut depth = 0_usize;
    let mut at = from;
    while at < text.len() {
        let rest = &text[at..];
        let Some(first) = rest.chars().next() else { break };
        at += match first {
            '"' | '\'' => string_length(rest, first),
            '#' => rest.find('\n').unwrap_or(rest.len()),
            '\n' if depth == 0 => return at + 1,
            _ => {
                match first {
                    '[' | '{' => depth += 1,
                    ']' | '}' => depth = depth.saturating_sub(1),
                    _ => {}
                }
                first.len_utf8()
            }
        };
    }
    text.len()
}

/// The length of the string at the start of `rest`, with its quotes; one that does not close ends with its line.
fn string_length(rest: &str, quote: char) -> usize {
    let triple = if quote == '"' { "\"\"\"" } else { "'''" };
    let (open, is_triple) = if rest.starts_with(triple) { (3, true) } else { (1, false) };
    let mut at = open;
    while let Some(c) = rest[at..].chars().next() {
        if is_triple && rest[at..].starts_with(triple) {
            return at + 3;
        }
        match c {
            '\n' if !is_triple => return at,
            '\\' if quote == '"' => {
                let escaped = rest[at + 1..].chars().next().filter(|c| is_triple || *c != '\n');
                at += 1 + escaped.map_or(0, char::len_utf8);
            }
            c if c == quote && !is_triple => return at + 1,
            c => at += c.len_utf8(),
        }
    }
    rest.len()
}

/// Hides the words of a value whose keys are secret. In an inline table a word before `=` is the key of what follows.
fn hide_value(text: &str, bytes: &mut [u8], value: Range<usize>, keys: Keys<'_>) {
    let mut inner = String::new();
    let mut at = value.start;
    while at < value.end {
        let rest = &text[at..value.end];
        let Some(first) = rest.chars().next() else { break };
        let length = match first {
            '"' | '\'' => string_length(rest, first),
            '#' => rest.find('\n').unwrap_or(rest.len()),
            c if is_delimiter(c) => {
                at += c.len_utf8();
                continue;
            }
            _ => rest.find(is_delimiter).unwrap_or(rest.len()),
        };
        let word = at..(at + length).min(value.end);
        at = word.end;

        if first == '#' {
            continue;
        }
        if text[at..value.end].trim_start_matches([' ', '\t']).starts_with('=') {
            inner = name_of(&text[word]);
            continue;
        }

        let of_inner = Keys { section: keys.key, key: &inner };
        if !REFERENCES.contains(&inner.as_str())
            && (keys.are_secret() && !of_inner.are_plain() || of_inner.are_secret())
        {
            hide(bytes, text, word);
        }
    }
}

fn is_delimiter(c: char) -> bool {
    c.is_whitespace() || matches!(c, ',' | '[' | ']' | '{' | '}' | '=')
}

/// Hides user, path and query of each URL of HTTP, and the user of any URL.
fn hide_urls(text: &str, bytes: &mut [u8]) {
    for (at, _) in text.match_indices("://") {
        let before = text[..at].rfind(|c: char| !c.is_ascii_alphanumeric() && !matches!(c, '+' | '-' | '.'));
        let start = before.map_or(0, |before| before + text[before..].chars().next().map_or(1, char::len_utf8));
        let end = text[at + 3..].find(ends_url).map_or(text.len(), |found| at + 3 + found);
        if !is_url(&text[start..end]) {
            continue;
        }

        let host = at + 3..text[at + 3..end].find(['/', '?', '#']).map_or(end, |found| at + 3 + found);
        if let Some(user) = text[host.clone()].rfind('@').filter(|_| !text[start..at].starts_with("abfs")) {
            hide(bytes, text, host.start..host.start + user);
        }

        if !BUCKETS.iter().any(|scheme| text[start..at].eq_ignore_ascii_case(scheme)) {
            hide(bytes, text, (host.end + 1).min(end)..end);
            continue;
        }
        // The key of a bucket may be a pattern, so its `?` begins a query only where a name follows.
        let equals = text[host.end..end].find('=');
        if let Some(query) = equals.and_then(|equals| text[host.end..host.end + equals].rfind('?')) {
            hide(bytes, text, host.end + query + 1..end);
        }
    }
}

fn ends_url(c: char) -> bool {
    c.is_whitespace() || matches!(c, '"' | '\'' | ',' | ']' | '}' | '`' | '>')
}

/// Replaces characters that could steer a terminal by marks of the same length.
fn hide_controls(text: &str, bytes: &mut [u8]) {
    for (at, c) in text.char_indices().filter(|(_, c)| c.is_control() && !matches!(c, '\n' | '\r' | '\t')) {
        // Control characters take one byte, or two whose first is that of a middle dot.
        let mark: &[u8] = if c.len_utf8() == 1 { b"?" } else { "\u{b7}".as_bytes() };
        if let Some(written) = bytes.get_mut(at..at + mark.len()) {
            written.copy_from_slice(mark);
        }
    }
}

/// Puts stars over a range of whole characters; line ends stay.
fn hide(bytes: &mut [u8], text: &str, range: Range<usize>) {
    if !text.is_char_boundary(range.start) || !text.is_char_boundary(range.end) {
        return;
    }
    for byte in bytes.get_mut(range).into_iter().flatten().filter(|byte| !matches!(byte, b'\n' | b'\r')) {
        *byte = b'*';
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_be_secret_is_not_shown() {
        for text in [
            "[hooks]\nheartbeat = \"https://hc-ping.com/HUSH\"\ntimeout = 5\n",
            "[hooks]\nheartbeat = \"htp://hc-ping.com/HUSH\"\n",
            "[hooks]\nheartbeat = \"HUSH\"\n",
            "[hooks]\nheartbeat = \"https://hc-ping.com/HUSH\n",
            "[hooks]\nheartbeat = https://hc-ping.com/HUSH\n",
            "[hooks]\nheartbeat = HUSH\n",
            "[hooks\nheartbeat = 'HUSH'\n",
            "[ hooks ]\nheartbeet = 'HUSH'\n",
            "[hook]\nfailure = [\"curl\", \"-H\",\n  \"Authorization: HUSH\"]\n",
            "hooks = { heartbeat = \"HUSH\", timeout = \"5s\" }\n",
            "hooks.heartbeat = \"HUSH\"\n",
            "[hooks]\nfailure = [\"sh\", \"-c\", \"\"\"\ncurl x\nHUSH\n\"\"\"]\n",
            "[hooks]\nfailure = [\n  'a', # c\n  'HUSH',\n]\n",
            "# heartbeat = \"https://hc-ping.com/HUSH\"\n",
            "description = \"see http://user:HUSH@host/\"\n",
            "files = [\"https://host/x.csv?sig=HUSH\"]\n",
            "root = \"s3://key:HUSH@bucket/p\"\n",
            "files = [\"s3://b/x.csv?X-Amz-Signature=HUSH\"]\n",
            "[sources.a.storage]\nsecret_access_key = \"HUSH\"\n",
            "storage = { region = \"r\", sas_token = \"HUSH\" }\n",
            "storage = { region = \"r\", sas_token = HUSH }\n",
            "[hooks]\nheartbeat = \"\\\"HUSH\"\n",
        ] {
            let shown = masked(text);
            assert!(!shown.contains("HUSH"), "{text} gave {shown}");
            assert_eq!(shown.len(), text.len());
            let lines = |text: &str| text.lines().map(str::len).collect::<Vec<_>>();
            assert_eq!(lines(&shown), lines(text), "{shown}");
        }
    }

    #[test]
    fn nothing_steers_a_terminal() {
        assert_eq!(masked("a = 1\t\x1b]0;x\x07\u{9b}2J\x7f\r\n"), "a = 1\t?]0;x?\u{b7}2J?\r\n");
    }

    #[test]
    fn everything_else_stays() {
        for text in [
            "name = \"j\"\n[sources.r]\nfiles = [\"s3://b/in/?/{day:%F}.csv\", \"a.csv\"]\n",
            "[hooks]\ntimeout = \"5 minutes\"\n",
            "secret_access_key = { env = \"T_KEY\" }\n",
            "[hooks]\nheartbeat = { file = \"secrets/url\" }\n",
            "[checks.c]\nseverity = \"warn\"\n# a comment = of é\n",
            "root = \"abfss://c@a.dfs.core.windows.net/p\"\n",
            "x = 1\n\n[a]\ny = [1,\n 2]\n",
            "",
        ] {
            assert_eq!(masked(text), text);
        }
    }
}
