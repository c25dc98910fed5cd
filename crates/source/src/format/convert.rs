//! Commands for `sh` that convert a file, as messages print them.

use crate::format::shell::shell_word;
use crate::format::{Compression, Format};

/// The command that passes the content of the file at `path`, unpacked, through `filter` into a new file.
///
/// `filter` is a command with its options that reads a file, or its standard input, and writes to its standard output. With
/// `may_be_packed`, the file is packed as its name says. The new file never has the name of the old one: the shell would empty
/// it before it is read.
pub(crate) fn conversion(path: &str, filter: &str, may_be_packed: bool) -> String {
    let lower = path.to_ascii_lowercase();
    let packed = Compression::of_name(&lower).filter(|_| may_be_packed);
    let file = operand(path);
    let needs_input = filter.starts_with("tr ") || filter == Compression::GZIP.command && !lower.ends_with(['z', 'Z']);
    let reading = match packed {
        Some(Compression { command, .. }) => format!("{command} {file} | {filter}"),
        None if needs_input => format!("{filter} < {file}"),
        None => format!("{filter} {file}"),
    };
    format!("{reading} > {}", new_name(path))
}

/// A path as an argument of a command: no option, one word.
pub(crate) fn operand(path: &str) -> String {
    let dashed = if path.starts_with('-') { format!("./{path}") } else { path.to_owned() };
    shell_word(&dashed)
}

/// The name of the file that a command writes, with the ending of the file at `path` without what packs it.
fn new_name(path: &str) -> String {
    let lower = path.to_ascii_lowercase();
    let unpacked = lower.rsplit_once('.').map_or(lower.as_str(), |(name, _)| name);
    let format = Format::of_name(&lower).or_else(|| Format::of_name(unpacked));
    let ending = format.map_or(".csv", Format::ending);
    let old = lower.rsplit(['/', '\\']).next().unwrap_or_default();
    let new = format!("NEW{ending}");
    if old == new.to_ascii_lowercase() { format!("NEW2{ending}") } else { new }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::process::Command;

    use super::*;

    /// Runs the command in a new folder with this file; the content of the file it makes.
    fn follow(path: &str, content: &[u8], command: &str, made: &str) -> String {
        let root = tempfile::tempdir().unwrap();
        std::fs::write(root.path().join(path), content).unwrap();
        let done = Command::new("sh").args(["-c", command]).current_dir(root.path()).status().unwrap();
        assert!(done.success(), "{command}");
        assert_eq!(std::fs::read(root.path().join(path)).unwrap(), content, "{command}");
        std::fs::read_to_string(root.path().join(made)).unwrap()
    }

    #[test]
    fn a_shell_does_what_the_commands_say() {
        for path in ["a.csv", "NEW.csv", "new.csv", "my $HOME data.csv", "it's \"so\".csv", "-x.csv", "a`id`;b.csv"] {
            let made = if path.eq_ignore_ascii_case("NEW.csv") { "NEW2.csv" } else { "NEW.csv" };
            let command = conversion(path, "iconv -f latin1 -t utf-8", true);
            assert_eq!(follow(path, b"St\xE4rke\n", &command, made), "Stärke\n");
            let command = conversion(path, "tr -d '\\000'", true);
            assert_eq!(follow(path, b"\0\0a,b\n", &command, made), "a,b\n");
            let command = conversion(path, "tail -n +2", true);
            assert_eq!(follow(path, b"x\na,b\n", &command, made), "a,b\n");
        }

        let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        packed.write_all(b"St\xE4rke\n").unwrap();
        let packed = packed.finish().unwrap();
        let command = conversion("a b.csv.gz", "iconv -f latin1 -t utf-8", true);
        assert_eq!(command, "gzip -dc 'a b.csv.gz' | iconv -f latin1 -t utf-8 > NEW.csv");
        assert_eq!(follow("a b.csv.gz", &packed, &command, "NEW.csv"), "Stärke\n");
        let plain = conversion("a.parquet", "gzip -dc", true);
        assert_eq!(plain, "gzip -dc < a.parquet > NEW.parquet");
    }

    #[test]
    fn packed_files_are_unpacked_first() {
        assert_eq!(
            conversion("d/NEW.csv.zst", "tr -d '\\000'", true),
            "zstd -dc d/NEW.csv.zst | tr -d '\\000' > NEW.csv"
        );
        assert_eq!(conversion("a.jsonl.zip", "jq -c '.[]'", true), "unzip -p a.jsonl.zip | jq -c '.[]' > NEW.jsonl");
        assert_eq!(conversion("a.csv.bz2", "bzip2 -dc", true), "bzip2 -dc a.csv.bz2 > NEW.csv");
        assert_eq!(conversion("NEW.csv.bz2", "bzip2 -dc", true), "bzip2 -dc NEW.csv.bz2 > NEW.csv");
        assert_eq!(conversion("NEW.tsv", "iconv", true), "iconv NEW.tsv > NEW.csv");
    }
}
