//! Names of columns in a comment line above the rows: `#fields`, `#Fields:` of web servers, or the last line with `#`.

use crate::sample::head::preamble::HeadRecord;
use crate::sample::head::rows::is_value;
use crate::spec::CsvOptions;

/// What stands before the names.
const WORDS: [&str; 2] = ["fields:", "fields"];

/// The names in a comment line with as many of them as the first record has fields, if that is a row: a line that says that it has
/// the names, or the last one above a record of which half of the fields are values.
pub(super) fn names(csv: &CsvOptions, bytes: &[u8], records: &[HeadRecord]) -> Option<Vec<String>> {
    let comment = csv.comment?;
    let first = records.first()?;
    let values = first.fields.iter().filter(|field| is_value(csv, &String::from_utf8_lossy(field))).count();
    if values == 0 {
        return None;
    }

    let lines = bytes.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii).filter(|line| !line.is_empty());
    let comments: Vec<&[u8]> = lines.take_while(|line| line.first() == Some(&comment)).collect();
    let names_of = |line: &&[u8]| names_in(csv, std::str::from_utf8(line).ok()?, first.fields.len());
    // A line that says that it has the names comes first.
    let said = comments.iter().filter(|line| WORDS.iter().any(|word| starts_with(line, word)));
    let is_row = values * 2 >= first.fields.len();
    said.clone().find_map(names_of).or_else(|| comments.iter().rev().filter(|_| is_row).find_map(names_of))
}

/// Whether a comment line starts with this word, in any case.
fn starts_with(line: &[u8], word: &str) -> bool {
    let text = line.get(1..).unwrap_or_default().trim_ascii_start();
    text.get(..word.len()).is_some_and(|start| start.eq_ignore_ascii_case(word.as_bytes()))
}

/// The names in a comment line, if there are `count` of them, none twice, and none is a value.
fn names_in(csv: &CsvOptions, line: &str, count: usize) -> Option<Vec<String>> {
    let mut rest = line.trim_start_matches('#').trim();
    for word in WORDS {
        if starts_with(line.as_bytes(), word) {
            rest = rest.get(word.len()..)?.trim();
            break;
        }
    }
    let mut names: Vec<String> = rest.split(char::from(csv.delimiter)).map(|name| name.trim().to_owned()).collect();
    // Logs of web servers have blanks between names, also above rows with tabs.
    if names.len() != count && starts_with(line.as_bytes(), WORDS[0]) {
        names = rest.split_ascii_whitespace().map(str::to_owned).collect();
    }
    let are_names = names.iter().all(|name| !name.is_empty() && !is_value(csv, name));
    let are_distinct = (1..names.len())
        .all(|at| !names.get(..at).is_some_and(|before| names.get(at).is_some_and(|name| before.contains(name))));
    (names.len() == count && are_names && are_distinct).then_some(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_comment_lines() {
        let found = |delimiter: u8, comments: &str, row: &[&str]| {
            let csv = CsvOptions { delimiter, comment: Some(b'#'), ..CsvOptions::default() };
            let fields = row.iter().map(|field| field.as_bytes().to_vec()).collect();
            names(&csv, comments.as_bytes(), &[HeadRecord { line: 9, fields }])
        };
        let zeek = "#fields\tts\tuid\tbytes\n#types\ttime\tstring\tcount\n1705269600.25\tC1\t5\n";
        assert_eq!(found(b'\t', zeek, &["1705269600.25", "C1", "5"]).unwrap(), ["ts", "uid", "bytes"]);
        assert_eq!(found(b'\t', zeek, &["1705269600.25", "C1", "-"]).unwrap(), ["ts", "uid", "bytes"]);
        let iis = "#Software: IIS\n#Fields: date time status\n";
        assert_eq!(found(b' ', iis, &["2024-01-01", "00:00:00", "200"]).unwrap(), ["date", "time", "status"]);
        let cloud = "#Version: 1.0\n#Fields: date time sc-bytes\n";
        assert_eq!(found(b'\t', cloud, &["2024-01-01", "00:00:00", "200"]).unwrap(), ["date", "time", "sc-bytes"]);
        let knmi = "# BRON: KNMI\n# STN,YYYYMMDD,   HH\n#\n";
        assert_eq!(found(b',', knmi, &["  260", "20240114", "    1"]).unwrap(), ["STN", "YYYYMMDD", "HH"]);
        // A header below comments has names of its own.
        assert_eq!(found(b',', "# a, b\n", &["time", "v"]), None);
        assert_eq!(found(b',', "# made 2024-01-01, by hand\n", &["1", "2", "3"]), None);
    }

    #[test]
    fn logs_of_web_servers_have_names() {
        let rows: String = (0..9).map(|at| format!("2024-01-01 00:00:0{at} 10.0.0.1 200\n")).collect();
        let text = format!("#Software: IIS\n#Fields: date time s-ip status\n{rows}");
        let head = crate::sample::head::read("a.csv", Box::new(std::io::Cursor::new(text)), None).unwrap();
        assert_eq!(head.names, ["date", "time", "s-ip", "status"]);
        assert_eq!((head.csv.header, head.csv.comment, head.csv.delimiter), (false, Some(b'#'), b' '));
    }
}
