//! Job files with random mistakes: each loads, or gives an error that places every mistake in the text.
//!
//! Mutates the files of `jobs/` by bytes, by tokens and by lines, from a fixed seed. `TIDETABLE_MUTATIONS` sets their
//! number for each; a failure names its mutation, and `TIDETABLE_MUTATION=job:number` repeats it.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use miette::{GraphicalReportHandler, GraphicalTheme};
use tidetable_job::{Job, JobError, Project};

/// Default number for each job.
const USUAL: u64 = 40;

/// Texts that people and programs write by mistake.
const ODD: [&str; 28] = [
    "",
    "0",
    "-1",
    "99999999999999999999",
    "1e999",
    "nan",
    "true",
    "\"\"",
    "''",
    "\"",
    "'",
    "\"\"\"",
    "[",
    "]",
    "{",
    "}",
    "[[",
    "=",
    "{ts:%",
    "{",
    "\"{meter:99999999999}\"",
    "\"{ts:%Q%V%G}\"",
    "\"{salt(ts, 0)}\"",
    "é",
    "\u{feff}",
    "\0",
    "\"SELECT\"",
    "#",
];

/// Deterministic random numbers (splitmix64).
struct Random(u64);

impl Random {
    fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, most: usize) -> usize {
        (self.number() % most.max(1) as u64) as usize
    }
}

/// The jobs of the repository: name and text.
fn jobs() -> Vec<(String, String)> {
    let folder = folder();
    let mut names: Vec<String> =
        fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.retain(|name| folder.join(name).join("job.toml").is_file());
    names.sort();
    let read = |name: String| {
        let text = fs::read_to_string(folder.join(&name).join("job.toml")).unwrap();
        (name, text)
    };
    names.into_iter().map(read).collect()
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../jobs")
}

/// Words, numbers and strings without their blanks, and the text between them; concatenated, they are the input.
fn tokens(text: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut start = 0;
    let kind = |letter: char| if letter.is_alphanumeric() || letter == '_' { 0 } else { 1 + letter as u32 };
    let letters: Vec<(usize, char)> = text.char_indices().collect();
    for pair in letters.windows(2) {
        if kind(pair[0].1) != kind(pair[1].1) {
            parts.push(&text[start..pair[1].0]);
            start = pair[1].0;
        }
    }
    parts.push(&text[start..]);
    parts
}

/// Removes, duplicates, swaps or replaces one of `parts`; `others` are candidates for replacement.
fn change<'t>(parts: &mut Vec<&'t str>, others: &[&'t str], random: &mut Random) {
    let (at, other) = (random.below(parts.len()), random.below(parts.len()));
    match random.below(5) {
        0 => {
            parts.remove(at);
        }
        1 => parts.insert(other, parts[at]),
        2 => parts.swap(at, other),
        3 => parts[at] = others[random.below(others.len())],
        _ => parts.insert(at, others[random.below(others.len())]),
    }
}

/// A job file with a few mistakes; it may not be valid UTF-8.
fn mutated(text: &str, all: &[(String, String)], random: &mut Random) -> Vec<u8> {
    let mut bytes = text.as_bytes().to_vec();
    for _ in 0..=random.below(3) {
        let whole = String::from_utf8(bytes.clone()).ok().filter(|text| !text.is_empty());
        let (Some(whole), kind) = (whole, random.below(5)) else { return bytes };
        let other = &all[random.below(all.len())].1;
        bytes = match kind {
            0 => {
                let at = random.below(bytes.len());
                match random.below(4) {
                    0 => bytes[at] ^= 1 << random.below(8),
                    1 => bytes.truncate(at),
                    2 => bytes.insert(at, random.number() as u8),
                    _ => {
                        bytes.remove(at);
                    }
                }
                bytes
            }
            1 | 2 => {
                let mut parts = tokens(&whole);
                let others = if kind == 1 { ODD.to_vec() } else { tokens(other) };
                change(&mut parts, &others, random);
                parts.concat().into_bytes()
            }
            _ => {
                let mut parts: Vec<&str> = whole.split_inclusive('\n').collect();
                change(&mut parts, &other.split_inclusive('\n').collect::<Vec<_>>(), random);
                parts.concat().into_bytes()
            }
        };
    }
    bytes
}

/// Loads a job file; returns the number of mistakes.
fn check(project: &Project, name: &str, path: &Path, bytes: &[u8]) -> Result<usize, String> {
    fs::write(path, bytes).unwrap();
    let error = match Job::load(project, name) {
        Ok(_) => return Ok(0),
        Err(JobError::File(error)) => error,
        // A file that is not UTF-8 has no places.
        Err(JobError::Read { .. }) if std::str::from_utf8(bytes).is_err() => return Ok(1),
        Err(error) => return Err(format!("another error: {error}")),
    };
    let text = error.text();
    if error.problems().is_empty() {
        return Err("an error without a mistake".to_owned());
    }
    if !is_masked_copy(text.as_bytes(), bytes) {
        return Err(format!("an error of another text:\n{text}\n"));
    }
    for problem in error.problems() {
        let at = problem.at();
        if text.get(at.clone()).is_none() {
            return Err(format!("`{problem}` stands at {at:?} of {} bytes", text.len()));
        }
        let (line, column) = problem.line_column(text);
        if line > text.lines().count().max(1) + 1 || column == 0 || problem.to_string().is_empty() {
            return Err(format!("`{problem}` stands in line {line}, column {column}"));
        }
    }
    let mut shown = String::new();
    GraphicalReportHandler::new_themed(GraphicalTheme::none())
        .render_report(&mut shown, error.as_ref())
        .map_err(|error| format!("it cannot be shown: {error}"))?;
    Ok(error.problems().len())
}

/// Whether `shown` is `bytes` with marks of the same length over some of them: stars over secrets, `?` and a middle dot over
/// control characters. Line ends stay, so that places are true.
fn is_masked_copy(shown: &[u8], bytes: &[u8]) -> bool {
    let is_mark = |byte: u8| matches!(byte, b'*' | b'?') || "\u{b7}".as_bytes().contains(&byte);
    let alike = |(shown, byte): (&u8, &u8)| shown == byte || is_mark(*shown) && *byte != b'\n';
    shown.len() == bytes.len() && shown.iter().zip(bytes).all(alike)
}

#[test]
fn every_mistake_has_its_place_in_the_text() {
    let setting = |name: &str| std::env::var(name).ok();
    let tries: u64 = setting("TIDETABLE_MUTATIONS").map_or(USUAL, |text| text.parse().unwrap());
    let only = setting("TIDETABLE_MUTATION");
    let jobs = jobs();
    let (mut sound, mut mistakes) = (0, 0);
    for (name, text) in &jobs {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("tidetable.toml"), "root = \"data\"\n").unwrap();
        let own = dir.path().join("jobs").join(name);
        fs::create_dir_all(&own).unwrap();
        for entry in fs::read_dir(folder().join(name)).unwrap().map(Result::unwrap) {
            fs::copy(entry.path(), own.join(entry.file_name())).unwrap();
        }
        let project = Project::find(dir.path()).unwrap();
        let path = own.join("job.toml");
        assert_eq!(check(&project, name, &path, text.as_bytes()), Ok(0), "{name}");
        for number in 0..tries {
            let called = format!("{name}:{number}");
            if only.as_ref().is_some_and(|only| *only != called) {
                continue;
            }
            let bytes = mutated(text, &jobs, &mut Random(number));
            match catch_unwind(AssertUnwindSafe(|| check(&project, name, &path, &bytes))) {
                Ok(Ok(0)) => sound += 1,
                Ok(Ok(found)) => mistakes += found,
                Ok(Err(what)) => panic!("{called}: {what} in:\n{}", String::from_utf8_lossy(&bytes)),
                Err(_) => panic!("{called}: a panic over:\n{}", String::from_utf8_lossy(&bytes)),
            }
        }
    }
    println!("{} files: {sound} are sound, the others have {mistakes} mistakes", tries * jobs.len() as u64);
    assert!(only.is_some() || tries < USUAL || mistakes > jobs.len() * 10 && sound > 0, "{mistakes}, {sound}");
}
