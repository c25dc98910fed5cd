//! Files that have grown, and files that grow while they are read.

use super::*;
use crate::read::{Growth, HeldContent};
use crate::reader_version::ReaderVersion;
use crate::text_shape::TextShape;

/// Rows and rejected rows of a file, as text with their lines, of chunks before and from `cut` on.
fn parts(storage: &Storage, spec: &SourceSpec, input: &InputFile, cut: u64) -> [Vec<String>; 2] {
    let mut reader = storage.open(spec, input).unwrap();
    reader.cut_at(&[cut]);
    let parser = reader.parser();
    let mut parts = [Vec::new(), Vec::new()];
    for chunk in &mut reader {
        let chunk = chunk.unwrap();
        let part = &mut parts[usize::from(chunk.offset() >= cut)];
        let parsed = parser.parse(chunk).unwrap();
        part.extend(
            (0..parsed.batch.num_rows()).map(|row| format!("{} {}", parsed.origin.line(row), parsed.origin.raw(row))),
        );
        part.extend(parsed.rejected.iter().map(Rejected::to_string));
    }
    parts.map(|mut part| {
        part.sort();
        part
    })
}

fn held(size: u64, hash: ContentHash) -> HeldContent {
    HeldContent { size, hash, reader: ReaderVersion::CURRENT, breaks: Vec::new(), shape: TextShape::default() }
}

#[test]
fn a_text_has_grown_where_its_old_records_are_those_of_now() {
    let root = TempDir::new().unwrap();
    let csv = CsvOptions { comment: Some(b'#'), ..CsvOptions::default() };
    let spec = texts(&[("a", FieldType::Text), ("ts", FieldType::Text), ("b", FieldType::Text)], csv);
    let spec = SourceSpec { time: "a".to_owned(), ..spec };
    let head = "a,ts,b\n";
    let texts = [
        "1,2,3\n4,5,6\n\n# no row\n7,8,9\n".to_owned(),
        "1,2,3\r\n4,5,6\r\n7,8\r\n9,9,9".to_owned(),
        "\"1\n,\"\"2\",2,3\n4,\"5\n\",6\n7,8,\"9\"\n".to_owned(),
        "1,\"open,3\n4,5,6\n7,8,9\n".to_owned(),
        "1,2,3\r\r\n4,5,\"6\r\n7\"x\n8,9\n".to_owned(),
    ];
    for (text, bom) in texts.iter().flat_map(|text| [(text, ""), (text, "\u{feff}")]) {
        let text = format!("{bom}{head}{text}");
        let mut grown = Vec::new();
        for chunk_bytes in [1, 9, 1 << 20] {
            let storage = Storage::new(root.path().to_owned(), None).with_chunk_bytes(chunk_bytes);
            for size in 1..text.len() {
                let write = |bytes: &[u8]| {
                    std::fs::write(root.path().join("a.csv"), bytes).unwrap();
                    storage.discover(&spec).unwrap().remove(0)
                };
                let input = write(&text.as_bytes()[..size]);
                let hash = storage.hash(&input).unwrap();
                let there =
                    (size >= bom.len() + head.len()).then(|| parts(&storage, &spec, &input, u64::MAX)[0].clone());
                let input = write(text.as_bytes());
                let found = storage.growth(&spec, &input, &[held(size as u64, hash)]).unwrap();
                assert_eq!(storage.growth(&spec, &input, &[held(size as u64, ContentHash(7))]).unwrap(), None);
                let Some(Growth { from: Some(from), new_break, bytes, hash, .. }) = found else { continue };
                assert_eq!((bytes, hash), (text.len() as u64, storage.hash(&input).unwrap()));
                let mut input = input.clone();
                input.breaks.extend(new_break);
                let [before, _] = parts(&storage, &spec, &input, from);
                assert_eq!(Some(before), there, "{text:?} from {size}, in chunks of {chunk_bytes}");
                grown.push((chunk_bytes, size));
            }
        }
        // How a file is cut makes no difference, and every line of plain text is a place to go on from.
        let sizes = |chunk: usize| grown.iter().filter(move |(bytes, _)| *bytes == chunk).map(|(_, size)| *size);
        assert!(sizes(1).eq(sizes(9)) && sizes(1).eq(sizes(1 << 20)), "{text:?}: {grown:?}");
        if !text.contains('"') {
            let ends = text.match_indices('\n').map(|(at, _)| at + 1).filter(|end| *end < text.len());
            assert!(ends.into_iter().all(|end| grown.contains(&(1, end))), "{text:?}: {grown:?}");
        }
    }
    let input = |name: &str, bytes: &[u8]| {
        std::fs::write(root.path().join(name), bytes).unwrap();
        let spec = SourceSpec { files: vec![name.to_owned()], ..spec.clone() };
        Storage::new(root.path().to_owned(), None).discover(&spec).unwrap().remove(0)
    };
    // Packed bytes are no records.
    let packed = |text: &str| {
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        gzip.write_all(text.as_bytes()).unwrap();
        gzip.finish().unwrap()
    };
    let (old, new) = (packed("a,ts,b\n1,2,3\n"), [packed("a,ts,b\n1,2,3\n"), packed("4,5,6\n")].concat());
    let before = input("b.csv.gz", &old);
    let storage = Storage::new(root.path().to_owned(), None);
    let packed = [held(before.size, storage.hash(&before).unwrap())];
    assert_eq!(storage.growth(&spec, &input("b.csv.gz", &new), &packed).unwrap(), None);
    // Of several contents, the longest that it begins with in whole records.
    let part = |name: &str, text: &str| {
        let input = input(name, text.as_bytes());
        held(input.size, storage.hash(&input).unwrap())
    };
    let parts = ["a,ts,b\n1,2,3\n4", "a,ts,b\n1,2,3\n", "a,ts,b\n", "a,ts,b\n1,2,4\n", "a,ts,b\n1,2,3\n4,5,6\n7,8,9\n"];
    let contents = parts.map(|text| part("part.csv", text));
    let grown = storage.growth(&spec, &input("whole.csv", b"a,ts,b\n1,2,3\n4,5,6\n"), &contents).unwrap();
    assert_eq!(grown.map(|grown| (grown.from, grown.before)), Some((Some(contents[1].size), contents[1].hash)));
}

/// A writer that appends while the file is read: what was there when it was found is read, up to the last whole line.
#[test]
fn file_that_grows_is_read_as_it_was_found() {
    let root = TempDir::new().unwrap();
    let spec = texts(&[("a", FieldType::Text), ("b", FieldType::Text)], CsvOptions::default());
    let spec = SourceSpec { time: "a".to_owned(), ..spec };
    let path = root.path().join("a.csv");
    let storage = Storage::new(root.path().to_owned(), None).with_chunk_bytes(8);
    let (before, after) = ("a,b\n1,2\n3,4\n5,", "6\n7,8\n");
    let read = |grows: bool| {
        std::fs::write(&path, before).unwrap();
        let input = storage.discover(&spec).unwrap().remove(0);
        let mut reader = storage.open(&spec, &input).unwrap();
        if grows {
            std::fs::OpenOptions::new().append(true).open(&path).unwrap().write_all(after.as_bytes()).unwrap();
        }
        let parser = reader.parser();
        let mut rows = 0;
        for chunk in &mut reader {
            rows += parser.parse(chunk.unwrap()).unwrap().batch.num_rows();
        }
        assert_eq!(reader.bytes_read(), before.len() as u64);
        let loaded = before.len() as u64 - reader.bytes_left();
        let hash = storage.hash_of_first(&input, loaded, reader.content_hash()).unwrap();
        (rows, loaded, hash)
    };
    let (rows, loaded, _) = read(false);
    assert_eq!((rows, loaded), (3, before.len() as u64));
    let (rows, loaded, hash) = read(true);
    assert_eq!((rows, loaded), (2, 12));
    // The next run goes on there.
    let input = storage.discover(&spec).unwrap().remove(0);
    let grown = storage.growth(&spec, &input, &[held(loaded, hash.unwrap())]).unwrap().unwrap();
    assert_eq!((grown.from, grown.new_break), (Some(12), None));
    std::fs::write(&path, "a,b\n9,9\n").unwrap();
    let rewritten = storage.hash_of_first(&input, loaded, grown.hash).unwrap();
    assert_eq!(rewritten, None, "other content");
}

/// An append that closes a quote, which was open at the end, does not take away rows.
#[test]
fn quote_that_an_append_closes_stays_a_stray_one() {
    let root = TempDir::new().unwrap();
    let spec = texts(&[("a", FieldType::Text), ("b", FieldType::Text)], CsvOptions::default());
    let spec = SourceSpec { time: "a".to_owned(), ..spec };
    let storage = Storage::new(root.path().to_owned(), None);
    let growth = |before: &str, after: &str| {
        std::fs::write(root.path().join("a.csv"), before).unwrap();
        let old = storage.discover(&spec).unwrap().remove(0);
        let content = held(old.size, storage.hash(&old).unwrap());
        std::fs::write(root.path().join("a.csv"), format!("{before}{after}")).unwrap();
        let input = storage.discover(&spec).unwrap().remove(0);
        let growth = storage.growth(&spec, &input, &[content]).unwrap().unwrap();
        (growth.from, growth.new_break)
    };
    // Rows stood behind the quote.
    assert_eq!(growth("a,b\n1,\"x\n2,y\n", "3,z\"\n"), (Some(13), Some(13)));
    assert_eq!(growth("a,b\n1,\"x\n2,y", "\n3,z\"\n"), (Some(13), Some(13)));
    assert_eq!(growth("a,b\n1,\"x\n2,y\n3,", "z\"\n"), (None, Some(13)));
    // None stood there: the record was cut.
    assert_eq!(growth("a,b\n1,\"x\n", "y\"\n"), (None, None));
    assert_eq!(growth("a,b\n1,\"x\nno row\n", "y\"\n"), (None, None));
    // Text behind the closing quote: it is a stray one in any case.
    assert_eq!(growth("a,b\n1,\"x\n2,y\n", "3,\"z\n"), (Some(13), None));
}

/// Rows of a file that was loaded as `before` and has `after` appended, read by the rules that it was loaded by, if it has
/// grown by whole records; and by those of a new file.
fn grown_rows(spec: &SourceSpec, path: &str, before: &str, after: &str) -> [Option<usize>; 2] {
    let root = TempDir::new().unwrap();
    let storage = Storage::new(root.path().to_owned(), None);
    let path = root.path().join(path);
    let write = |text: String| {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        storage.discover(spec).unwrap().remove(0)
    };
    let input = write(before.to_owned());
    let shape = storage.open(spec, &input).unwrap().shape();
    let content = HeldContent { shape, ..held(input.size, storage.hash(&input).unwrap()) };

    let input = write(format!("{before}{after}"));
    let count = |input: &InputFile| {
        let mut reader = storage.open(spec, input).ok()?;
        let parser = reader.parser();
        Some((&mut reader).map(|chunk| parser.parse(chunk.unwrap()).unwrap().batch.num_rows()).sum())
    };
    let grown = storage.growth(spec, &input, &[content]).unwrap();
    let as_new = count(&input);
    let mut kept = input;
    kept.shape = shape;
    [grown.filter(|grown| grown.from.is_some()).and_then(|_| count(&kept)), as_new]
}

#[test]
fn lines_end_as_when_the_text_was_loaded() {
    let spec = texts(&[("a", FieldType::Text), ("b", FieldType::Text)], CsvOptions::default());
    let spec = SourceSpec { time: "a".to_owned(), ..spec };
    // A new file whose header has a CR is refused.
    assert_eq!(grown_rows(&spec, "a.csv", "a,b\r1,2\r3,4\r", "5,6\n7,8\n"), [Some(4), None]);
    assert_eq!(grown_rows(&spec, "a.csv", "a,b\r1,2\r3,4\r", "5,6\r\n7,8\r"), [Some(4), None]);
    for chunk_bytes in 1..12 {
        // A CR LF is one line end wherever it is cut.
        let root = TempDir::new().unwrap();
        std::fs::write(root.path().join("a.csv"), "a,b\r1,2\r\n3,4\r\n5,6\r\r7,8").unwrap();
        let storage = Storage::new(root.path().to_owned(), None).with_chunk_bytes(chunk_bytes);
        let mut input = storage.discover(&spec).unwrap().remove(0);
        input.shape.returns = true;
        let [rows, _] = parts(&storage, &spec, &input, u64::MAX);
        assert_eq!(rows, ["2 1,2", "3 3,4", "4 5,6", "6 7,8"], "{chunk_bytes}");
    }
    assert_eq!(grown_rows(&spec, "a.csv", "a,b\n1,2\n", "5,6\r7,8\n"), [Some(1), Some(1)]);
    assert_eq!(grown_rows(&spec, "a.csv", "a,b\n1,2\n", "5,6\n"), [Some(2), Some(2)]);
}

#[test]
fn lines_without_a_header_keep_their_width() {
    let columns = [("a", FieldType::Text), ("b", FieldType::Text), ("site", FieldType::Text)];
    let spec = SourceSpec {
        files: vec!["site=A/*.csv".to_owned()],
        time: "a".to_owned(),
        ..texts(&columns, CsvOptions { header: false, ..CsvOptions::default() })
    };
    // Most of the lines have three fields now.
    assert_eq!(grown_rows(&spec, "site=A/a.csv", "1,2\n3,4\n", "5,6,7\n8,9,0\n8,9,1\n"), [Some(2), Some(3)]);
}
