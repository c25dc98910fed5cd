//! Relative links of Markdown files point to files and headings that exist.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

use super::{markdown_files, read};
use crate::harness::repository;

/// The lines of a page outside of blocks of code, without what stands between backticks.
fn prose(text: &str) -> Vec<String> {
    let (mut lines, mut inside) = (Vec::new(), false);
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            inside = !inside;
        } else if !inside {
            lines.push(line.split('`').step_by(2).collect::<Vec<_>>().join("`"));
        }
    }
    lines
}

/// The targets of the links and images of a page.
fn targets(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for line in prose(text) {
        for (opening, closing) in [("](", ')'), ("src=\"", '"'), ("srcset=\"", '"'), ("href=\"", '"')] {
            for rest in line.split(opening).skip(1) {
                found.extend(rest.split(closing).next().map(str::to_owned));
            }
        }
    }
    found.retain(|target| !["https://", "http://", "mailto:"].iter().any(|scheme| target.starts_with(scheme)));
    found
}

/// The anchors of the headings of a page, as GitHub and mdBook make them.
fn anchors(text: &str) -> Vec<String> {
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let mut anchors = Vec::new();
    let mut inside = false;
    for line in text.lines() {
        inside ^= line.starts_with("```");
        let heading = line.trim_start_matches('#');
        if inside || heading.len() == line.len() || !heading.starts_with(' ') {
            continue;
        }
        let mut anchor = String::new();
        for character in heading.trim().chars().flat_map(char::to_lowercase) {
            match character {
                ' ' => anchor.push('-'),
                '-' | '_' => anchor.push(character),
                _ if character.is_alphanumeric() => anchor.push(character),
                _ => {}
            }
        }
        let times = seen.entry(anchor.clone()).or_default();
        anchors.push(if *times == 0 { anchor } else { format!("{anchor}-{times}") });
        *times += 1;
    }
    anchors
}

/// A path without `.` and `..`.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => assert!(plain.pop(), "{} leaves the repository", path.display()),
            Component::CurDir => {}
            part => plain.push(part),
        }
    }
    plain
}

#[test]
fn every_link_resolves() {
    let mut broken = Vec::new();
    for page in markdown_files() {
        let text = read(&page);
        for target in targets(&text) {
            let (file, anchor) = target.split_once('#').unwrap_or((&target, ""));
            let path =
                if file.is_empty() { PathBuf::from(&page) } else { plain(&Path::new(&page).with_file_name(file)) };
            let there = repository().join(&path);
            let outside = page.starts_with("docs/") && !path.starts_with("docs");
            if outside {
                broken.push(format!("{page}: {target} is not in docs/, so the site does not have it"));
            } else if !there.exists() {
                broken.push(format!("{page}: {target}: there is no {}", path.display()));
            } else if !anchor.is_empty() && !anchors(&read(path.to_str().unwrap())).iter().any(|found| found == anchor)
            {
                broken.push(format!("{page}: {target}: {} has no such heading", path.display()));
            }
        }
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

#[test]
fn site_contents_list_every_page() {
    let contents = read("docs/SUMMARY.md");
    let listed = targets(&contents);
    for page in markdown_files() {
        if let Some(page) = page.strip_prefix("docs/").filter(|page| *page != "SUMMARY.md") {
            assert!(listed.iter().any(|target| target == page), "docs/SUMMARY.md does not list {page}");
        }
    }
}

#[test]
fn what_an_operator_needs_stands_before_layouts() {
    let contents = read("docs/SUMMARY.md");
    let listed = targets(&contents);
    let place = |page: &str| listed.iter().position(|target| target == page).unwrap_or_else(|| panic!("no {page}"));
    let last =
        ["inputs", "exports", "sql", "operations"].map(|page| place(&format!("guide/{page}.md"))).into_iter().max();
    assert!(last < Some(place("guide/layouts.md").min(place("guide/choose-a-layout.md"))), "{listed:?}");
}

#[test]
fn guides_warn_where_rows_would_count_twice_or_go() {
    for (page, warning) in [
        ("delta", "their rows count twice until `clean` has removed them"),
        ("bigtable", "an exception to the rule that [an input that is gone keeps its cells](inputs.md)"),
    ] {
        assert!(read(&format!("docs/guide/{page}.md")).contains(warning), "{page}: {warning}");
    }
}

#[test]
fn documentation_lists_every_page() {
    let (contents, register) = (read("docs/README.md"), read("docs/datafusion-workarounds.md"));
    for page in markdown_files() {
        let Some(page) = page.strip_prefix("docs/").filter(|page| !["README.md", "SUMMARY.md"].contains(page)) else {
            continue;
        };
        let is_listed = if page.starts_with("upstream/") {
            // Reports to DataFusion are named where their workarounds are.
            register.contains(&format!("`docs/{page}`"))
        } else {
            targets(&contents).iter().any(|target| target == page)
        };
        assert!(is_listed, "docs/README.md, or for a report docs/datafusion-workarounds.md, does not list {page}");
    }
}

#[test]
fn headings_become_anchors() {
    let text = "# A `b` (c)\n```sh\n# no heading\n```\n## Two words, one_name\n## A b c\n";
    assert_eq!(anchors(text), ["a-b-c", "two-words-one_name", "a-b-c-1"]);
    assert_eq!(targets("[a](b.md#c) `[d](e)` ![f](g.svg) [h](https://i)\n```\n[j](k)\n```\n"), ["b.md#c", "g.svg"]);
}
