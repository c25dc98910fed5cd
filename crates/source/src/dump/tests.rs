use std::io::Cursor;

use super::CbtRows;
use super::cells::CellLists;
use crate::decompress::Decoded;
use crate::error::SourceError;

fn opened(text: &[u8]) -> Result<CbtRows, SourceError> {
    CbtRows::open(Decoded::new("a.cbt.csv".to_owned(), Box::new(Cursor::new(text.to_vec())))?)
}

/// Cells as `key family:qualifier@timestamp=value`.
fn cells_of(text: &[u8]) -> Result<Vec<String>, SourceError> {
    let mut rows = opened(text)?;
    let mut found = Vec::new();
    while let Some(batch) = rows.next()? {
        let lists = CellLists::of("a", &batch).unwrap();
        for row in 0..lists.rows() {
            for cell in lists.cells_of(row).map(|place| lists.cell(place)) {
                let [key, qualifier, value] =
                    [lists.key(row), cell.qualifier, cell.value].map(|bytes| bytes.escape_ascii().to_string());
                found.push(format!("{key} {}:{qualifier}@{}={value}", cell.family, cell.timestamp));
            }
        }
    }
    Ok(found)
}

#[test]
fn lines_of_one_row_are_one_row() {
    let text = b",f,,g\r\n,a,\"b,\"\"\",\n\nk,1@7,\"x\ny@0x10\",\nk,2@-5,,@9223372036854775807\n\xff,a@b,@@012,v\n";
    assert_eq!(
        cells_of(text).unwrap(),
        [
            "k f:a@7=1",
            "k f:b,\\\"@16=x\\ny",
            "k f:a@-5=2",
            "k g:@9223372036854775807=",
            "\\xff f:a@0=a@b",
            "\\xff f:b,\\\"@10=@",
            "\\xff g:@0=v",
        ]
    );
    let batch = opened(text).unwrap().next().unwrap().unwrap();
    assert_eq!(batch.num_rows(), 2);
    assert!(cells_of(b"").is_err(), "a file that is not yet written");
}

#[test]
fn lines_that_are_cut_or_wrong_are_errors_with_their_place() {
    for (text, wanted) in [
        (&b",f\n,a\nk,1@7"[..], "the end of the cbt CSV file is missing"),
        (b",f\n,a\nk,\"1@7\n", "the end of the cbt CSV file is missing"),
        (b",f\n", "the end of the cbt CSV file is missing"),
        (b",f\n,a\nk,1,2\n", "line 3: 2 values behind the row key, and 1 columns"),
        (b",f\n,a\n\nk,\"1\"2\n", "line 4: text behind the closing quote of a value"),
        (b",f\n,\n,a\n", ""),
        (b"k,f\n,a\n", "it has k, f"),
        (b",,f\n,a,b\n", "line 2: a column without the name of its family"),
        (b"SEQ\x06!org.apache", "a Hadoop SequenceFile"),
    ] {
        match cells_of(text) {
            Err(error) => assert!(error.to_string().contains(wanted) && !wanted.is_empty(), "{error}"),
            Ok(found) => assert_eq!(wanted, "", "{found:?}"),
        }
    }
}

#[test]
fn a_batch_ends_behind_a_whole_row() {
    let mut text = b",f\n,a\n".to_vec();
    for version in 0..100_000 {
        text.extend_from_slice(format!("k,v@{version}\n").as_bytes());
    }
    text.extend_from_slice(b"l,v@1\n");
    let mut rows = opened(&text).unwrap();
    let counts: Vec<usize> = std::iter::from_fn(|| rows.next().unwrap()).map(|batch| batch.num_rows()).collect();
    assert_eq!(counts, [1, 1]);
    assert_eq!(rows.stored().bytes(), text.len() as u64);
}
