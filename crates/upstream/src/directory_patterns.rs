//! Wildcards in the directories of a location, `year=*/month=*/*.parquet`; row "Patterns in directories" of
//! `docs/datafusion-workarounds.md`.

use std::path::{Path, PathBuf};

use globset::{GlobBuilder, GlobMatcher};

/// Expands each location to one per directory that matches its pattern: DataFusion 55.2 matches a pattern against the
/// first directory only.
///
/// # Errors
/// The first location whose pattern matches no file.
pub fn located(locations: &[String]) -> Result<Vec<String>, &String> {
    let mut found = Vec::with_capacity(locations.len());
    for location in locations {
        match location.rsplit_once('/') {
            Some((directories, files)) if is_pattern(directories) => {
                let files_of = matcher(if files.is_empty() { "*" } else { files }).ok_or(location)?;
                let (start, directories) = match directories.strip_prefix('/') {
                    Some(directories) => (PathBuf::from("/"), directories),
                    None => (PathBuf::new(), directories),
                };

                let before = found.len();
                let parts: Vec<&str> = directories.split('/').collect();
                walk(start, &parts, &mut |directory| {
                    let has_files =
                        entries(directory).iter().any(|(name, is_directory)| !is_directory && files_of.is_match(name));
                    if has_files {
                        found.push(format!("{}/{files}", directory.display()));
                    }
                });
                if found.len() == before {
                    return Err(location);
                }
            }
            _ => found.push(location.clone()),
        }
    }
    Ok(found)
}

/// The files that a location names whose directories have no wildcards: those that match its pattern, those in a directory and in
/// partitions of it (`year=2020`), or itself. They are sorted by name; those whose name begins with `.` match no wildcard.
pub fn files_of(location: &str) -> Vec<PathBuf> {
    let path = Path::new(location);
    let (directory, names) = match location.rsplit_once('/') {
        _ if !is_pattern(location) && !path.is_dir() => return vec![path.to_owned()],
        _ if !is_pattern(location) => return files_below(path),
        Some(("", names)) => ("/", names),
        Some((directory, names)) => (directory, names),
        None => ("", location),
    };
    let Some(matcher) = matcher(names) else { return Vec::new() };
    let directory = Path::new(directory);
    let of_data = entries(directory).into_iter().filter(|(name, is_directory)| !is_directory && !name.starts_with('.'));
    of_data.filter(|(name, _)| matcher.is_match(name)).map(|(name, _)| directory.join(name)).collect()
}

/// The files in a directory and in its partitions, as DataFusion lists them.
fn files_below(directory: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for (name, is_directory) in entries(directory).into_iter().filter(|(name, _)| !name.starts_with('.')) {
        let path = directory.join(&name);
        match is_directory {
            true if name.contains('=') => files.extend(files_below(&path)),
            true => {}
            false => files.push(path),
        }
    }
    files
}

/// Whether `text` has a wildcard of a pattern of paths.
pub fn is_pattern(text: &str) -> bool {
    text.contains(['*', '?', '['])
}

fn matcher(pattern: &str) -> Option<GlobMatcher> {
    Some(GlobBuilder::new(pattern).literal_separator(true).build().ok()?.compile_matcher())
}

/// Calls `found` with each directory below `directory` that matches `parts`; `**` matches any number of directories.
fn walk(directory: PathBuf, parts: &[&str], found: &mut impl FnMut(&Path)) {
    let Some((part, rest)) = parts.split_first() else { return found(&directory) };
    if !is_pattern(part) {
        return walk(directory.join(part), rest, found);
    }
    let any = *part == "**";
    if any {
        walk(directory.clone(), rest, found);
    }
    let Some(matcher) = matcher(part) else { return };
    for (name, is_directory) in entries(&directory) {
        if is_directory && !name.starts_with('.') && (any || matcher.is_match(&name)) {
            walk(directory.join(name), if any { parts } else { rest }, found);
        }
    }
}

/// Sorted entries of a directory and whether they are directories; empty if it cannot be listed. Does not follow
/// symbolic links.
fn entries(directory: &Path) -> Vec<(String, bool)> {
    let directory = if directory.as_os_str().is_empty() { Path::new(".") } else { directory };
    let Ok(entries) = std::fs::read_dir(directory) else { return Vec::new() };
    let named = entries
        .flatten()
        .filter_map(|entry| Some((entry.file_name().into_string().ok()?, entry.file_type().ok()?.is_dir())));
    let mut named: Vec<(String, bool)> = named.collect();
    named.sort_unstable();
    named
}
