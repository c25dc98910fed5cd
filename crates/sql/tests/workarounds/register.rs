//! The register lists every test, and all paths exist.

use std::path::Path;

#[test]
fn each_test_has_a_row_and_each_row_a_test() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let register = std::fs::read_to_string(root.join("../../docs/datafusion-workarounds.md")).unwrap();
    let mut tests = Vec::new();
    for entry in std::fs::read_dir(root.join("tests/workarounds")).unwrap() {
        let code = std::fs::read_to_string(entry.unwrap().path()).unwrap();
        let names = code.lines().filter_map(|line| line.strip_prefix("async fn still_broken_"));
        tests.extend(names.filter_map(|line| line.split('(').next()).map(|name| format!("still_broken_{name}")));
    }
    let named = |name: &String| register.contains(&format!("`{name}`"));
    let missing: Vec<_> = tests.iter().filter(|name| !named(name)).collect();
    assert!(missing.is_empty(), "tests without a row in docs/datafusion-workarounds.md: {missing:?}");
    for name in register.split('`').filter(|part| part.starts_with("still_broken_") && !part.contains('*')) {
        assert!(tests.iter().any(|test| test == name), "docs/datafusion-workarounds.md names {name}, which is no test");
    }
    // Paths in the register and reports of defects exist.
    let names = register.split('`').filter(|part| part.starts_with("crates/") || part.starts_with("docs/"));
    for path in names.map(|part| part.split([' ', '*']).next().unwrap_or_default()) {
        assert!(root.join("../..").join(path).exists(), "docs/datafusion-workarounds.md names {path}");
    }
}
