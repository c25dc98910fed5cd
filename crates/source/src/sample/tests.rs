use chrono_tz::Tz;
use tidetable_layout::FieldType;

use crate::sample::Sample;
use crate::sample::error::SampleError;
use crate::spec::SourceSpec;
use crate::storage::Storage;

fn sample_of(name: &str, bytes: &[u8]) -> Result<Sample, SampleError> {
    let root = tempfile::tempdir().unwrap();
    std::fs::write(root.path().join(name), bytes).unwrap();
    let storage = Storage::new(root.path().to_owned(), None);
    let spec = SourceSpec { files: vec![name.to_owned()], ..SourceSpec::default() };
    let input = storage.discover(&spec).unwrap().remove(0);
    storage.sample(&input, Some(Tz::Europe__Paris))
}

fn columns_of(text: &str) -> Vec<String> {
    let sample = sample_of("a.csv", text.as_bytes()).unwrap();
    assert_eq!(sample.rejected, 0, "{text}");
    let shown = sample.spec.columns.iter().map(|column| {
        let zone = column.timezone.map(|zone| zone.name());
        format!("{} {:?} {} {}", column.name, column.kind, column.format.as_deref().unwrap_or("-"), zone.unwrap_or("-"))
    });
    shown.collect()
}

#[test]
fn types_of_columns() {
    let text = "ts,id,code,price,speed,ok,note,gap\n\
                2020-01-01 00:00:00,1,007,1.50,0.1,true,NA,NA\n\
                2020-01-02 00:00:00,2,010,20.00,3,false,Namibia,7\n";
    assert_eq!(
        columns_of(text),
        [
            "ts Timestamp - Europe/Paris",
            "id Int64 - -",
            "code Text - -",
            "price Decimal { precision: 10, scale: 2 } - -",
            "speed Float64 - -",
            "ok Bool - -",
            "note Text - -",
            "gap Int64 - -",
        ]
    );
}

#[test]
fn forms_of_times() {
    for (first, second, wanted) in [
        ("2020-01-01T00:00:00Z", "2020-01-01T01:00:00Z", "Timestamp - -"),
        ("2020-01-01T00:00:00+01:00", "2020-01-01T01:00:00+01:00", "Timestamp - -"),
        ("2020-01-01 00:00", "2020-01-01 00:15", "Timestamp %Y-%m-%d %H:%M Europe/Paris"),
        ("2020-01-01", "2020-02-01", "Date - -"),
        ("31/12/2020 23:00", "01/01/2021 00:00", "Timestamp %d/%m/%Y %H:%M Europe/Paris"),
        ("12/31/2020 11:00 PM", "01/01/2021 12:00 AM", "Timestamp %m/%d/%Y %I:%M %p Europe/Paris"),
        ("03/04/2020 01:00", "04/04/2020 01:00", "Timestamp %d/%m/%Y %H:%M Europe/Paris"),
        ("03/04/2020 01:00", "03/05/2020 01:00", "Timestamp %m/%d/%Y %H:%M Europe/Paris"),
        ("1.2.2020 07:00:00", "2.2.2020 07:00:00", "Timestamp %d.%m.%Y %H:%M:%S Europe/Paris"),
        ("20200131", "20200201", "Date %Y%m%d -"),
        ("20200131134500", "20200131134600", "Timestamp %Y%m%d%H%M%S Europe/Paris"),
        ("1577836800", "1577836900", "Timestamp s -"),
        ("1577836800123", "1577836900123", "Timestamp ms -"),
        ("1577836800123456", "1577836900123456", "Timestamp us -"),
        ("1577836800123456789", "1577836900123456789", "Timestamp ns -"),
        ("2020-01-01 00:00:00 UTC", "2020-01-01 01:00:00 UTC", "Timestamp %Y-%m-%d %H:%M:%S UTC -"),
        ("01 Jan 2020 07:00:00", "02 Feb 2020 07:00:00", "Timestamp %d %b %Y %H:%M:%S Europe/Paris"),
    ] {
        let text = format!("time,v\n{first},1\n{second},2\n");
        assert_eq!(columns_of(&text)[0], format!("time {wanted}"), "{first}");
    }
    let both = sample_of("a.csv", b"time,v\n03/04/2020 01:00,1\n04/04/2020 01:00,2\n").unwrap();
    assert_eq!(both.columns[0].also.as_deref(), Some("%m/%d/%Y %H:%M"));
}

#[test]
fn integers_are_times_where_the_name_says_so() {
    let sample = sample_of("a.csv", b"x,v\n1577836800,1\n1577836900,2\n").unwrap();
    assert_eq!(sample.spec.columns[0].kind, FieldType::Int64);
    assert_eq!(sample.columns[0].maybe_epoch, Some("s"));
    assert_eq!(columns_of("date_id,v\n12345678,1\n87654321,2\n")[0], "date_id Int64 - -");
}

#[test]
fn dialects() {
    let semicolons =
        sample_of("a.csv", "# made by hand\n# twice\n\nts;v;w\n2020-01-01;1,5;x, y\n2020-01-02;-;z\n".as_bytes())
            .unwrap();
    assert_eq!((semicolons.spec.csv.delimiter, semicolons.spec.csv.comment), (b';', Some(b'#')));
    assert!(semicolons.spec.csv.decimal_comma);
    assert_eq!(semicolons.spec.csv.null, ["", "-"]);
    let tabs = sample_of("a.tsv", b"\xEF\xBB\xBFts\tname\n2020-01-01\t\"a\nb\"\n2020-01-02\tc,d,e\n").unwrap();
    assert_eq!(tabs.spec.csv.delimiter, b'\t');
    assert_eq!(tabs.spec.columns[0].name, "ts");
    let header = sample_of("a.csv", b"#ts,v\n2020-01-01,1\n2020-01-02,2\n").unwrap();
    assert_eq!((header.spec.csv.comment, header.spec.columns[0].name.as_str()), (None, "#ts"));
    let index = sample_of("a.csv", b",ts,v\n0,2020-01-01,1\n1,2020-01-02,2\n").unwrap();
    assert_eq!(index.left_out, ["column 1 (it has no name)"]);
    assert_eq!(index.spec.columns.len(), 2);
}

#[test]
fn what_shows_too_little() {
    let error = |bytes: &[u8]| sample_of("a.csv", bytes).unwrap_err().to_string();
    assert!(error(b"").contains("no rows"));
    assert!(error(b"\n \n").contains("no rows"));
    assert!(error(b"ts,v\n").contains("no rows"));
    assert!(error(b"ts,v\n2020-01-01,1\n").contains("one row only"));
    assert!(error(b"2020-01-01,1,x\n2020-01-02,2,y\n2020-01-03,3,z\n").contains("first line holds values"));
    assert!(error(b"value\n1\n2\n").contains("one column only"));
    assert!(error(b"ts,name\n2020-01-01,Jos\xE9\n2020-01-02,x\n").contains("line 2: not UTF-8"));
    assert!(error(b"\xFF\xFEt\0s\0,\0v\0\n\0").contains("line 1: not UTF-8"));
    let ragged = error(b"ts,v\n2020-01-01,1\n2020-01-02,2,3\n2020-01-03,4\n");
    assert!(ragged.contains("line 3: expected 2 columns, found 3") && ragged.contains("1 of 3 rows"), "{ragged}");
    assert!(error(b"ts,v,v\n2020-01-01,1,2\n2020-01-02,1,2\n").contains("twice"));
    assert!(error(b"ts,v\n2020-01-01,\"1\n2020-01-02,2\n").contains("never closed"));
}

/// A file of `rows` rows of a time, an integer, a decimal and a code.
fn long_file(rows: usize, line: impl Fn(usize) -> Option<&'static str>) -> String {
    (0..rows).fold("ts,id,kwh,code\n".to_owned(), |text, row| {
        let own = format!("2020-01-{:02} {:02}:00,{row},{row}.5,{}", 1 + row / 24 % 31, row % 24, 1000 + row);
        text + line(row).unwrap_or(&own) + "\n"
    })
}

#[test]
fn a_few_odd_values_do_not_make_a_column_text() {
    let kinds = |sample: &Sample| sample.spec.columns.iter().map(|column| column.kind).collect::<Vec<_>>();
    let decimal = FieldType::Decimal { precision: 10, scale: 1 };
    let text = long_file(2500, |row| match row {
        // Also where formats are tried first.
        0 => Some("not-a-time-1,\"0\n\",0.5,1000"),
        1250 => Some("n/e 2020,INV-05,abc,1000"),
        1300 => Some("2020-01-01 00:00,5,def,1000"),
        _ => None,
    });
    let sample = sample_of("a.csv", text.as_bytes()).unwrap();
    assert_eq!(kinds(&sample), [FieldType::Timestamp, FieldType::Int64, decimal, FieldType::Int64]);
    let odd = |at: usize| sample.columns[at].odd.clone().map(|odd| (odd.count, odd.first, odd.line));
    assert_eq!(odd(0), Some((2, "not-a-time-1".to_owned(), 2)));
    assert_eq!(odd(1), Some((1, "INV-05".to_owned(), 1253)));
    assert_eq!(odd(2), Some((2, "abc".to_owned(), 1253)));
    assert_eq!((odd(3), sample.rejected), (None, 3));
    // One of a hundred rows, and one truncated line.
    let sample = sample_of("a.csv", long_file(101, |row| (row == 9).then_some("x,9,9.5,1")).as_bytes()).unwrap();
    assert_eq!((kinds(&sample)[0], sample.rejected), (FieldType::Timestamp, 1));
    let sample = sample_of("a.csv", long_file(200, |row| (row == 9).then_some("2020-01")).as_bytes()).unwrap();
    assert_eq!((kinds(&sample)[0], sample.rejected), (FieldType::Timestamp, 1));
    // Days written as digits, whose odd value is a number too.
    let days: String = (0..200).map(|row| format!("202001{:02},{row}\n", 1 + row % 28)).collect();
    let sample = sample_of("a.csv", format!("date,v\n{days}20201399,1\n").as_bytes()).unwrap();
    assert_eq!((kinds(&sample)[0], sample.rejected), (FieldType::Date, 1));
}

#[test]
fn what_is_not_odd_stays_text() {
    let kind = |text: String, at: usize| sample_of("a.csv", text.as_bytes()).unwrap().spec.columns[at].kind;
    // Names among integers, zeros in front, too many odd values, too few values.
    let with = |code: &'static str| long_file(2500, move |row| (row == 7).then_some(code));
    assert_eq!(kind(with("2020-01-01 00:00,1,1.5,A12"), 3), FieldType::Text);
    assert_eq!(kind(with("2020-01-01 00:00,1,1.5,00123"), 3), FieldType::Text);
    assert_eq!(kind(long_file(2500, |row| (row % 800 == 0).then_some("x,1,1.5,1000")), 0), FieldType::Text);
    assert_eq!(kind(long_file(90, |row| (row == 7).then_some("x,1,1.5,1000")), 0), FieldType::Text);
    assert_eq!(kind(with("x,1,1.5,1"), 0), FieldType::Timestamp);
    let words: String = (0..1000).map(|row| format!("{row},{}\n", ["true", "false"][row % 2])).collect();
    assert_eq!(kind(format!("a,b\n{words}1,unknown\n"), 1), FieldType::Text);
}
