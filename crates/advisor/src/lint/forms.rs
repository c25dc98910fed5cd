//! Forms of values: hosts, and those that say something of a person.

use std::collections::BTreeSet;
use std::net::IpAddr;

/// Last labels that are ends of file names.
const FILE_ENDINGS: [&str; 12] = ["csv", "gz", "html", "jpg", "json", "log", "md", "pdf", "png", "txt", "xml", "zip"];

/// Whether a text is a domain name: labels of letters, digits and hyphens, the last of letters.
pub(crate) fn is_domain(text: &str) -> bool {
    let labels: Vec<&str> = text.split('.').collect();
    let [.., _, last] = labels.as_slice() else { return false };
    let top = last.len() >= 2 && last.bytes().all(|byte| byte.is_ascii_alphabetic());
    top && !FILE_ENDINGS.contains(&last.to_ascii_lowercase().as_str()) && labels.iter().all(|label| is_label(label))
}

/// Whether a text is a label of a domain name: 1 to 63 letters, digits and hyphens, no hyphen at either end (RFC 1123).
fn is_label(label: &str) -> bool {
    let is_plain = label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    (1..=63).contains(&label.len()) && is_plain && !label.starts_with('-') && !label.ends_with('-')
}

/// The last two labels of a domain name: whose it is, nearly always.
pub(crate) fn owner(domain: &str) -> &str {
    let second = domain.rmatch_indices('.').nth(1).map_or(0, |(at, _)| at + 1);
    domain.get(second..).unwrap_or(domain)
}

/// Share of values that must be domain names.
const MOST_DOMAINS: f64 = 0.9;

/// Whether values are domain names of several owners, one of them with several: reversed, those of one owner are neighbours.
pub(crate) fn is_domains<'a>(values: impl IntoIterator<Item = &'a str>) -> bool {
    let (mut all, mut domains, mut owners) = (0_u32, 0_u32, BTreeSet::new());
    for value in values {
        all += 1;
        if is_domain(value) {
            domains += 1;
            owners.insert(owner(value));
        }
    }
    all > 0
        && f64::from(domains) >= MOST_DOMAINS * f64::from(all)
        && owners.len() >= 2
        && owners.len() < domains as usize
}

/// What a value says of a person by its form.
pub(crate) fn personal(text: &str) -> Option<&'static str> {
    if text.split_once('@').is_some_and(|(name, domain)| !name.is_empty() && is_domain(domain)) {
        Some("a mail address")
    } else if text.parse::<IpAddr>().is_ok() {
        Some("an IP address")
    } else if is_iban(text) {
        Some("a bank account")
    } else if is_card(text) {
        Some("a card number")
    } else {
        None
    }
}

/// 13 to 19 digits with the check digit of ISO/IEC 7812 (Luhn).
fn is_card(text: &str) -> bool {
    let digits: Vec<u32> = text.chars().filter(|c| !matches!(c, ' ' | '-')).map_while(|c| c.to_digit(10)).collect();
    let all = text.chars().filter(|c| !matches!(c, ' ' | '-')).count();
    let mut sum = 0;
    for (at, digit) in digits.iter().rev().enumerate() {
        // Every other digit is doubled, and counts by the sum of its digits.
        let value = if at % 2 == 1 { 2 * digit } else { *digit };
        sum += value / 10 + value % 10;
    }
    all == digits.len() && (13..=19).contains(&all) && sum > 0 && sum.is_multiple_of(10)
}

/// Two letters, two check digits and 11 to 30 letters or digits, 1 modulo 97 (ISO 13616).
fn is_iban(text: &str) -> bool {
    let plain: String = text.chars().filter(|c| *c != ' ').collect();
    let Some((head, rest)) = plain.split_at_checked(4) else { return false };
    let country = head.bytes().take(2).all(|byte| byte.is_ascii_uppercase());
    let check = head.bytes().skip(2).all(|byte| byte.is_ascii_digit());
    if !country || !check || !(11..=30).contains(&rest.len()) || !rest.bytes().all(|b| b.is_ascii_alphanumeric()) {
        return false;
    }

    // Letters are numbers of two digits, from 10 for A.
    let mut remainder = 0;
    for value in rest.chars().chain(head.chars()).filter_map(|c| c.to_digit(36)) {
        remainder = (remainder * if value < 10 { 10 } else { 100 } + value) % 97;
    }
    remainder == 1
}

/// A value of which only the beginning is shown.
pub(crate) fn masked(text: &str) -> String {
    let shown: String = text.chars().take(2).collect();
    format!("{shown}…")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms() {
        for domain in ["drive.google.com", "a-b.example.org", "x.io"] {
            assert!(is_domain(domain), "{domain}");
        }
        for other in ["google", "1.2.3.4", "-a.com", "a..com", "report.csv", "v1.2", ""] {
            assert!(!is_domain(other), "{other}");
        }
        assert_eq!((owner("drive.google.com"), owner("google.com")), ("google.com", "google.com"));
        assert_eq!(personal("jo@example.org"), Some("a mail address"));
        assert_eq!(personal("192.0.2.7"), Some("an IP address"));
        assert_eq!(personal("2001:db8::1"), Some("an IP address"));
        // The examples of the two standards.
        assert_eq!(personal("GB82 WEST 1234 5698 7654 32"), Some("a bank account"));
        assert_eq!(personal("GB83 WEST 1234 5698 7654 32"), None);
        assert_eq!(personal("4111 1111 1111 1111"), Some("a card number"));
        assert_eq!(personal("4111111111111112"), None);
        assert_eq!(personal("0000000000000000"), None);
        assert_eq!(personal("meter-17"), None);
        assert_eq!(masked("jo@example.org"), "jo…");
    }
}
