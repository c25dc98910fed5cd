use super::rule::GcRule;

const DAY: i64 = 86_400_000_000;

fn rule(text: &str) -> GcRule {
    GcRule::parse(text).unwrap()
}

#[test]
fn versions_and_ages() {
    assert!(!rule("maxversions=2").drops(1, 0, 0));
    assert!(rule("maxversions=2").drops(2, 0, 0));
    assert!(!rule("maxage=30d").drops(0, 0, 30 * DAY), "as old as allowed stays");
    assert!(rule("maxage=30d").drops(0, -1, 30 * DAY));
    assert!(!rule("never").drops(9, 0, i64::MAX));
}

#[test]
fn unions_and_intersections() {
    let (old, new) = (0, 10 * DAY);
    let now = 11 * DAY;
    let union = rule("maxage=5d or maxversions=1");
    assert!(union.drops(0, old, now) && union.drops(1, new, now) && !union.drops(0, new, now));
    let both = rule("maxage=5d and maxversions=1");
    assert!(!both.drops(0, old, now) && !both.drops(1, new, now) && both.drops(1, old, now));
}

#[test]
fn rules_are_read_from_left_to_right() {
    // (never and maxversions=1) or maxage=5d, and never and (maxversions=1 or maxage=5d)
    assert!(rule("never and maxversions=1 or maxage=5d").drops(0, 0, 6 * DAY));
    assert!(!rule("never and (maxversions=1 or maxage=5d)").drops(0, 0, 6 * DAY));
    assert!(rule("((maxage=1h) and (maxversions=3)) or maxversions=9").drops(9, DAY, DAY));
}

#[test]
fn wrong_rules_are_pointed_at() {
    for (bad, wanted, at) in [
        ("", "`maxversions=N`", 0..0),
        ("maxversions=0", "a number", 0..13),
        ("maxversions=2 and maxage=30", "an age", 18..27),
        ("maxage=d", "an age", 0..8),
        ("maxage=4294967295d", "an age", 0..18),
        ("maxversions=1 maxage=1d", "`and`", 14..23),
        ("(maxversions=1", "`)`", 14..14),
        ("maxversions=1)", "`and`", 13..14),
        ("maxversions=1 and", "`maxversions=N`", 17..17),
        ("()", "`maxversions=N`", 1..2),
        ("keep", "`maxversions=N`", 0..4),
    ] {
        let error = GcRule::parse(bad).unwrap_err();
        assert!(error.wanted.starts_with(wanted), "{bad}: {error}");
        assert_eq!(error.at, at, "{bad}");
    }
}
