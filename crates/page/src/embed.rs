//! What a page holds besides markup: JSON, and the policy that forbids everything else.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;
use sha2::{Digest, Sha256};

use crate::error::PageError;

/// JSON that may stand in a `script` element: no text in it ends the element or opens a comment.
pub(crate) fn json(value: &impl Serialize) -> Result<String, PageError> {
    let text = serde_json::to_string(value)?;
    // Outside strings JSON has none of these, and inside the escape means the same.
    Ok(text
        .replace('<', "\\u003c")
        .replace('>', "\\u003e")
        .replace('&', "\\u0026")
        .replace('\u{2028}', "\\u2028")
        .replace('\u{2029}', "\\u2029"))
}

/// A content security policy that allows these styles and scripts, pictures inside the page, and nothing of a network.
pub(crate) fn policy(style: &str, scripts: &[&str]) -> String {
    let scripts: Vec<String> = scripts.iter().map(|script| hash(script)).collect();
    let scripts = if scripts.is_empty() { "'none'".to_owned() } else { scripts.join(" ") };
    format!(
        "default-src 'none'; script-src {scripts}; style-src {}; img-src data:; base-uri 'none'; form-action 'none'",
        hash(style)
    )
}

/// The source of a policy that allows just this text.
fn hash(text: &str) -> String {
    format!("'sha256-{}'", STANDARD.encode(Sha256::digest(text.as_bytes())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_ends_the_script() {
        let given = "</script><!-- & \u{2028} \u{202e}abc";
        let text = json(&given).unwrap();
        assert!(!text.contains(['<', '>', '&', '\u{2028}']), "{text}");
        assert_eq!(serde_json::from_str::<String>(&text).unwrap(), given);
    }

    #[test]
    fn the_policy_names_hashes() {
        let policy = policy("", &["", ""]);
        let empty = "'sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU='";
        assert!(policy.starts_with(&format!("default-src 'none'; script-src {empty} {empty}; style-src {empty};")));
    }
}
