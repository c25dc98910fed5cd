use arrow::array::{Array, AsArray};
use arrow::datatypes::TimestampMicrosecondType;
use chrono_tz::Tz;
use tidetable_layout::FieldType;

use crate::sample::error::SampleError;
use crate::sample::{Codes, Sample};
use crate::spec::Thousands;
use crate::spec::{ColumnSpec, CsvOptions, SourceSpec};
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
    assert_eq!((index.spec.columns.len(), index.unnamed.len()), (2, 0));
    let times = sample_of("a.csv", b",v,w,\n2020-01-01,1,3,\n2020-01-02,2,5,\n").unwrap();
    assert_eq!(
        (times.left_out, times.unnamed),
        (vec!["column 4 (it has no name)".to_owned()], vec!["column_1".to_owned()])
    );
    assert_eq!(times.spec.columns[0].kind, FieldType::Date);
}

#[test]
fn intervals_stand_for_their_start() {
    let format_of = |name: &str, values: [&str; 3]| {
        let rows: String = values.iter().enumerate().map(|(at, value)| format!("\"{value}\",{at}.5\n")).collect();
        let found = sample_of("a.csv", format!("{name},v\n{rows}").as_bytes()).unwrap();
        (found.spec.columns[0].kind, found.spec.columns[0].format.clone())
    };
    let hours = ["31.01.2020 23:00", "01.02.2020 00:00", "01.02.2020 01:00", "01.02.2020 02:00"];
    let mtu = [0, 1, 2].map(|at| format!("{} - {}", hours[at], hours[at + 1]));
    let timestamp = |format: &str| (FieldType::Timestamp, Some(format.to_owned()));
    assert_eq!(format_of("MTU (CET/CEST)", mtu.each_ref().map(String::as_str)), timestamp("%d.%m.%Y %H:%M - %*"));
    assert_eq!(format_of("Start / End", ["2020-01-01T00:00Z/2020-01-01T01:00Z"; 3]), timestamp("%Y-%m-%dT%H:%MZ/%*"));
    let (kind, format) =
        format_of("week", ["2020-01-06 - 2020-01-12", "2020-01-13 - 2020-01-19", "2020-01-20 - 2020-01-26"]);
    assert_eq!((kind, format.as_deref()), (FieldType::Date, Some("%Y-%m-%d - %*")));
    // Pairs of codes are text.
    assert_eq!(format_of("pair", ["123456/654321", "123456/654322", "123457/654321"]).0, FieldType::Text);
}

#[test]
fn a_header_that_holds_values_is_none() {
    let found = sample_of("a.csv", b"2020-01-01,1,x\n2020-01-02,2,y\n2020-01-03,3,z\n").unwrap();
    let columns: Vec<_> = found.spec.columns.iter().map(|column| (column.name.as_str(), column.kind)).collect();
    assert_eq!(columns, [("column_1", FieldType::Date), ("column_2", FieldType::Int64), ("column_3", FieldType::Text)]);
    assert!(!found.spec.csv.header);
    assert_eq!(found.batches.iter().map(|batch| batch.num_rows()).sum::<usize>(), 3, "the first line is a row");

    // One number twice in the first line, empty columns and numbers of rows: places count.
    let found = sample_of("a.csv", b"1,0.5,0.5,,2020-01-01\n2,0.5,0.75,,2020-01-02\n").unwrap();
    assert_eq!(found.spec.columns.len(), 5);
    assert_eq!(found.spec.columns[4].kind, FieldType::Date);
}

#[test]
fn what_shows_too_little() {
    let error = |bytes: &[u8]| sample_of("a.csv", bytes).unwrap_err().to_string();
    assert!(error(b"").contains("no rows"));
    assert!(error(b"\n \n").contains("no rows"));
    assert!(error(b"ts,v\n").contains("no rows"));
    assert!(error(b"ts,v\n2020-01-01,1\n").contains("one row only"));
    assert!(error(b"value\n1\n2\n").contains("one column only"));
    assert!(error(b"ts,name\n2020-01-01,Jos\xE9\n2020-01-02,x\n").contains("line 2: not UTF-8"));
    assert!(error(b"\xFF\xFEt\0s\0,\0v\0\n\0").contains("this is UTF-16 text"));
    let ragged = error(b"ts,v\n2020-01-01,1\n2020-01-02,2,3\n2020-01-03,4\n");
    assert!(ragged.contains("line 3: expected 2 columns, found 3") && ragged.contains("1 of 3 rows"), "{ragged}");
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

fn rows(header: &str, count: usize, row: impl Fn(usize) -> String) -> String {
    (0..count).fold(format!("{header}\n"), |text, at| text + &row(at) + "\n")
}

#[test]
fn digits_are_calendar_times_where_all_read_so() {
    let first = |text: String| columns_of(&text)[0].clone();
    let two = |at: usize| format!("21040{}{:02}{:02}", 1 + at / 96, at / 4 % 24, at % 4 * 15);
    assert_eq!(first(rows("time,v", 192, |at| format!("{},{at}", two(at)))), "time Timestamp %y%m%d%H%M Europe/Paris");
    let seconds = rows("time,v", 192, |at| format!("{}00,{at}", two(at)));
    assert_eq!(first(seconds), "time Timestamp %y%m%d%H%M%S Europe/Paris");
    let midnight = rows("reading_time,v", 96, |at| format!("2021040{}{:02}00,{at}", 1 + at / 24, 1 + at % 24));
    assert_eq!(first(midnight), "reading_time Timestamp %Y%m%d%H%M Europe/Paris");
    let epochs = rows("time,v", 192, |at| format!("{},{at}", 1_612_310_000 + at));
    assert_eq!(first(epochs), "time Timestamp s -");
}

#[test]
fn more_forms_of_times() {
    for (first, second, wanted) in [
        ("2021-04-01T10:00", "2021-04-01T10:00:20.5", "Timestamp - Europe/Paris"),
        ("2021-04-01 10:00:00,000", "2021-04-01 10:00:01,007", "Timestamp %Y-%m-%d %H:%M:%S,%f Europe/Paris"),
        ("2021-07-01T00:00:00+02:00", "2021-07-01 00:15:00", "Timestamp - Europe/Paris"),
        ("2021-10-31 02:00 CEST", "2021-10-31 02:00 CET", "Timestamp %Y-%m-%d %H:%M %Z Europe/Paris"),
        (
            "Thu Apr 01 2021 00:00:00 GMT+0200",
            "Thu Apr 01 2021 01:00:00 GMT+0200",
            "Timestamp %a %b %d %Y %H:%M:%S GMT%z -",
        ),
        ("1551129661.000000", "1551129663.142857", "Timestamp s -"),
        ("3 mars 2021", "4 avr. 2021", "Date %d %b %Y -"),
        ("2022-07-01 23:00", "2022-07-01 24:00", "Timestamp %Y-%m-%d %H:%M Europe/Paris"),
    ] {
        let text = format!("time;v\n{first};1\n{second};2\n");
        assert_eq!(columns_of(&text)[0], format!("time {wanted}"), "{first}");
    }
    let serials = columns_of("date,v\n44287.0,1\n44287.0104166667,2\n");
    assert_eq!(serials[0], "date Timestamp excel -");
}

#[test]
fn the_first_of_each_month_is_monthly() {
    let format = |text: &str| {
        let sample = sample_of("a.csv", text.as_bytes()).unwrap();
        (sample.spec.columns[0].format.clone().unwrap(), sample.columns[0].also.clone())
    };
    let month = rows("date,v", 12, |at| format!("01/{:02}/2020,{at}", at + 1));
    assert_eq!(format(&month), ("%d/%m/%Y".to_owned(), Some("%m/%d/%Y".to_owned())));
    let day = rows("date,v", 12, |at| format!("{:02}/03/2022,{at}", at + 1));
    assert_eq!(format(&day), ("%d/%m/%Y".to_owned(), Some("%m/%d/%Y".to_owned())));
    let american = rows("date,v", 12, |at| format!("{:02}/01/2020,{at}", at + 1));
    assert_eq!(format(&american), ("%m/%d/%Y".to_owned(), Some("%d/%m/%Y".to_owned())));
}

#[test]
fn counters_are_no_times() {
    let text = rows("time,uptime_ms,cpu_time_total,v", 150, |at| {
        format!("2021-04-01T00:{:02}:{:02}Z,{},{},{at}.5", at / 60, at % 60, 800_000_000_000 + at, 900_000_000 + at)
    });
    let columns = columns_of(&text);
    assert_eq!(columns[1..3], ["uptime_ms Int64 - -", "cpu_time_total Int64 - -"]);
}

#[test]
fn notations_of_numbers() {
    let column = |text: &str| {
        let sample = sample_of("a.csv", text.as_bytes()).unwrap();
        assert_eq!(sample.rejected, 0, "{text}");
        let column = sample.spec.columns[1].clone();
        (column.kind, column.decimal_comma, column.thousands)
    };
    let decimal = FieldType::Decimal { precision: 10, scale: 1 };
    let english = column("ts,v\n2020-01-01,\"1,025.3\"\n2020-01-02,900.1\n");
    assert_eq!(english, (decimal, None, Some(Thousands::Comma)));
    let german = column("ts;v\n2020-01-01;1.025,3\n2020-01-02;900,1\n");
    assert_eq!(german, (decimal, Some(true), Some(Thousands::Point)));
    let quoted = column("ts,v\n2020-01-01,\"9,8\"\n2020-01-02,\"0,3\"\n");
    assert_eq!(quoted, (decimal, Some(true), None));
    let minus = column("ts,v\n2020-01-01,\u{2212}6.0\n2020-01-02,7.5\n");
    assert_eq!(minus, (decimal, None, None));
    let blanks = column("ts,v\n2020-01-01\u{A0},1.5\u{A0}\n2020-01-02\u{A0},\u{A0}2.5\n");
    assert_eq!(blanks, (decimal, None, None));
}

#[test]
fn codes_stay_text_and_measures_do_not() {
    let text = rows("ts,fw,phone,plus,short,code", 40, |at| {
        let version = ["1.9", "1.10", "1.1", "2.0"][at % 4];
        format!("2020-01-01 00:{at:02},{version},+4917012345{at:02},+{at}.2,.5,0{at}")
    });
    let sample = sample_of("a.csv", text.as_bytes()).unwrap();
    let kinds: Vec<bool> = sample.spec.columns[1..].iter().map(|column| column.kind == FieldType::Text).collect();
    assert_eq!(kinds, [true, true, false, false, true]);
    assert_eq!(sample.columns[1].codes, Some(Codes::OneNumber("1.1".to_owned(), "1.10".to_owned())));
    assert_eq!(sample.columns[3].rewritten.as_deref(), Some("+0.2"));
    assert_eq!(sample.columns[4].rewritten.as_deref(), Some(".5"));
}

#[test]
fn words_of_missing_numbers_are_null() {
    let words = ["No Data", "Bad Input", "Pt Created"];
    let value = |at: usize| if at % 20 == 11 { words[at / 20 % 3].to_owned() } else { format!("{}.25", 100 + at % 37) };
    let text =
        rows("ts,tag,value", 600, |at| format!("2020-01-01 {:02}:{:02},F{},{}", at / 60, at % 60, at % 3, value(at)));
    let sample = sample_of("a.csv", text.as_bytes()).unwrap();
    let found = sample.columns[2].words.clone().unwrap();
    assert_eq!((found.values, found.count, found.words.len(), sample.rejected), (600, 30, 3, 0));
    assert!(
        words.iter().all(|word| sample.spec.csv.null.iter().any(|null| null == word)),
        "{:?}",
        sample.spec.csv.null
    );
    // A word of a text column is no null marker.
    let text = text.replace(",F1,", ",No Data,");
    let sample = sample_of("a.csv", text.as_bytes()).unwrap();
    assert_eq!(sample.spec.columns[2].kind, FieldType::Text);
    assert_eq!(sample.spec.csv.null, [""]);
    // Names among integers are no missing numbers.
    let room = |at: usize| if at % 10 == 3 { "Lobby" } else { ["101", "102", "103"][at % 3] };
    let rooms = rows("ts,room,v", 200, |at| format!("2020-01-01 00:{:02},{},1", at % 60, room(at)));
    assert_eq!(sample_of("a.csv", rooms.as_bytes()).unwrap().spec.columns[1].kind, FieldType::Text);
}

#[test]
fn text_that_is_nearly_numbers_names_the_first_other_value() {
    let value = |at: usize| if at % 10 == 7 { format!("{at} kW") } else { format!("{at}.5") };
    let text = rows("ts,power", 100, |at| format!("2020-01-01 00:{:02},{}", at % 60, value(at)));
    let sample = sample_of("a.csv", text.as_bytes()).unwrap();
    let nearly = sample.columns[1].nearly.clone().unwrap();
    assert_eq!((nearly.is_time, nearly.values, nearly.odd.count, nearly.odd.line), (false, 100, 10, 9));
    assert_eq!(nearly.odd.first, "7 kW");
}

#[test]
fn lines_before_the_header_are_skipped() {
    let rows: String = (1..9).map(|day| format!("2020-01-0{day},{day}\n")).collect();
    let told = sample_of("a.csv", format!("Station report\nmade, by, hand\n\nts,v\n{rows}").as_bytes()).unwrap();
    assert_eq!((told.spec.csv.skip, told.spec.columns[0].name.as_str(), told.rejected), (3, "ts", 0));
    assert_eq!(told.batches.iter().map(|batch| batch.num_rows()).sum::<usize>(), 8);

    // Decimal commas split values, but not the header.
    let rows: String = (1..9).map(|day| format!("2020-01-0{day};{day},5\n")).collect();
    let commas = sample_of("a.csv", format!("Report\nof 2020\nts;v\n{rows}").as_bytes()).unwrap();
    assert_eq!((commas.spec.csv.skip, commas.spec.csv.delimiter, commas.spec.columns.len()), (2, b';', 2));
    assert!(commas.spec.csv.decimal_comma);
}

fn dialect(text: &str) -> CsvOptions {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.csv");
    std::fs::write(&path, text).unwrap();
    Storage::new(folder.path().to_owned(), None).csv_dialect(&path, None).unwrap()
}

#[test]
fn delimiter_quote_and_header_are_found() {
    for (text, delimiter, quote, header) in [
        ("a,b\n1,2\n", b',', b'"', true),
        ("a;b\n1,5;2\n", b';', b'"', true),
        ("a\tb\nx\ty\n", b'\t', b'"', true),
        ("7|Ghent\n42|Lyon\n", b'|', b'"', false),
        ("'a','b'\n'x','1'\n", b',', b'\'', true),
        ("1,2\n", b',', b'"', false),
        ("a,b\n", b',', b'"', true),
        ("value\n1\n2\n", b',', b'"', true),
        ("1\n2\n3\n", b',', b'"', false),
        ("", b',', b'"', true),
    ] {
        let found = dialect(text);
        assert_eq!((found.delimiter, found.quote, found.header), (delimiter, Some(quote), header), "{text:?}");
    }
    assert_eq!(dialect("# of the plant\na,b\n1,2\n3,4\n").comment, Some(b'#'));
    let skipped =
        dialect("Report of the plant\n\nts;kwh;note\n2020-01-01;1;a\n2020-01-02;2;b\n2020-01-03;3;c\n2020-01-04;4;d\n");
    assert_eq!((skipped.delimiter, skipped.header), (b';', true));
    assert!(skipped.skip > 0);
}

/// The first declared column that is called so, with its place.
fn column<'s>(sample: &'s Sample, name: &str) -> (usize, &'s ColumnSpec) {
    sample.spec.columns.iter().enumerate().find(|(_, column)| column.name == name).unwrap()
}

fn row_count(sample: &Sample) -> usize {
    sample.batches.iter().map(|batch| batch.num_rows()).sum()
}

#[test]
fn rows_that_begin_with_the_mark_of_comments_are_rows() {
    let head = "# exported by logger 3\ntag,time,value\n";
    let row = |tag: &str, at: u8| format!("{tag},2024-02-01 00:00:{at:02},{at}.5\n");
    let rows = format!("{}{}{}{}", row("#1 pump", 1), row("fan", 2), row("#2 pump", 3), row("fan", 4));
    let sample = sample_of("a.csv", format!("{head}{rows}").as_bytes()).unwrap();
    assert_eq!((sample.spec.csv.comment, sample.spec.csv.skip, row_count(&sample)), (None, 1, 4));
    assert_eq!(dialect(&format!("{head}{rows}")).comment, None);

    // Other lines stay comments, and are counted.
    let text = format!("{head}{}# moved to hall 2\n{}", row("fan", 1), row("pump", 2));
    let sample = sample_of("a.csv", text.as_bytes()).unwrap();
    let notes = &sample.notes;
    assert_eq!((sample.spec.csv.comment, sample.spec.csv.skip, row_count(&sample)), (Some(b'#'), 0, 2));
    assert_eq!((notes.comments.count, notes.comments.first_line, notes.comment_rows.count), (1, 4, 0));
}

#[test]
fn null_markers_of_numbers_stay_values_of_text() {
    let text = rows("time,country,wind,gust", 60, |at| {
        let wind = if at % 7 == 3 { "NA".to_owned() } else { format!("{at}.5") };
        let gust = if at % 9 == 3 { "?".to_owned() } else { format!("{at}.5") };
        format!("2024-01-01 00:{at:02},{},{wind},{gust}", ["NA", "DE", "FR"][at % 3])
    });
    let sample = sample_of("a.csv", text.as_bytes()).unwrap();
    assert_eq!(sample.spec.csv.null, ["", "?"]);
    assert_eq!(column(&sample, "wind").1.null.as_deref(), Some(&[String::new(), "NA".to_owned()][..]));
    assert_eq!((column(&sample, "country").1.null.as_ref(), column(&sample, "gust").1.null.as_ref()), (None, None));
    let nulls =
        |name: &str| sample.batches.iter().map(|batch| batch.column_by_name(name).unwrap().null_count()).sum::<usize>();
    assert_eq!([nulls("country"), nulls("wind"), nulls("gust")], [0, 9, 7]);
    let kept = sample.columns[1].kept_marker.clone().unwrap();
    assert_eq!((kept.marker.as_str(), kept.count), ("NA", 20));
    // The null of database dumps is no text.
    let sample = sample_of("a.csv", text.replace("NA", "\\N").as_bytes()).unwrap();
    assert_eq!(
        (sample.spec.csv.null.as_slice(), &sample.columns[1].kept_marker),
        (&["", "?", "\\N"].map(str::to_owned)[..], &None)
    );
}

#[test]
fn commas_in_quotes_are_flags_or_fractions() {
    let text = rows("station,date,tmp,slp,price", 20, |at| {
        format!("0123,2023-01-{:02}T00:56:00,\"+00{at:02},5\",\"10{at:02}7,1\",\"{at},5\"", at + 1)
    });
    let sample = sample_of("a.csv", text.as_bytes()).unwrap();
    let kinds: Vec<FieldType> = sample.spec.columns.iter().map(|column| column.kind).collect();
    assert_eq!(kinds[2..], [FieldType::Text, FieldType::Text, FieldType::Decimal { precision: 10, scale: 1 }]);
    assert_eq!(sample.columns[2].flagged.as_deref(), Some("+0000,5"));
    assert_eq!(sample.columns[4].decimal_comma.as_deref(), Some("0,5"));
}

#[test]
fn groups_of_three_are_thousands_where_other_columns_say_so() {
    let german =
        "time;kw;count;sum\n13.02.2024 00:00;859,9;1.234.567,8;2.425\n13.02.2024 00:10;225,2;1.234.567,9;5.874\n";
    let sample = sample_of("a.csv", german.as_bytes()).unwrap();
    let sum = column(&sample, "sum").1;
    assert!(sample.spec.csv.decimal_comma);
    assert_eq!((sum.kind, sum.decimal_comma, sum.thousands), (FieldType::Int64, None, Some(Thousands::Point)));
    assert_eq!(sample.columns[3].ambiguous_separator.as_deref(), Some("2.425"));

    let english = "time;kw;sum\n2024-02-13 00:00;859.9;2,425\n2024-02-13 00:10;225.2;5,874\n";
    let sample = sample_of("a.csv", english.as_bytes()).unwrap();
    assert_eq!(column(&sample, "sum").1.thousands, Some(Thousands::Comma));
    let fractions = sample_of("a.csv", german.replace("2.425", "2.4").as_bytes()).unwrap();
    assert_eq!(column(&fractions, "sum").1.thousands, None);
    // A number of JSON has a point before its fraction, whatever texts have.
    let json = "{\"time\": \"2024-02-13T00:00:00Z\", \"kw\": \"859,9\", \"sum\": 2.425}\n";
    let sample = sample_of("a.jsonl", json.repeat(2).as_bytes()).unwrap();
    assert_eq!(column(&sample, "sum").1.thousands, None);
}

#[test]
fn far_numbers_of_nines_are_told_and_stay() {
    let text = rows("time;temp;eor", 24, |at| {
        let temp = if at % 8 == 3 { "-999".to_owned() } else { format!("  {at}.5") };
        format!("2022-01-01 {at:02}:00;{temp};eor")
    });
    let sample = sample_of("a.csv", text.as_bytes()).unwrap();
    let far = sample.columns[1].far.clone().unwrap();
    assert_eq!((far.numbers.len(), far.numbers[0].first.as_str(), far.numbers[0].count), (1, "-999", 3));
    assert_eq!((far.least.as_str(), far.most.as_str()), ("0.5", "23.5"));
    assert_eq!(sample.batches[0].column(1).null_count(), 0);
}

#[test]
fn american_clocks_have_the_month_first() {
    let format = |text: &str| {
        let sample = sample_of("a.csv", text.as_bytes()).unwrap();
        (sample.spec.columns[0].format.clone().unwrap(), sample.columns[0].also.clone())
    };
    let hours = rows("time,v", 11, |at| format!("4/12/2016 {}:21:00 AM,1", at + 1));
    assert_eq!(format(&hours), ("%m/%d/%Y %I:%M:%S %p".to_owned(), Some("%d/%m/%Y %I:%M:%S %p".to_owned())));
    let azure = rows("time,v", 9, |at| format!("\"5/13/2024, 12:00:1{at}.979 AM\",1"));
    assert_eq!(format(&azure), ("%m/%d/%Y, %I:%M:%S%.f %p".to_owned(), None));
}

#[test]
fn days_alone_among_times_are_midnights() {
    let text = rows("Zeit;Wert", 96, |at| match at % 24 {
        0 => format!("{}.02.2024;1,8", 13 + at / 24),
        hour => format!("{}.02.2024 {hour:02}:00:00;0,5", 13 + at / 24),
    });
    let sample = sample_of("a.csv", text.as_bytes()).unwrap();
    assert_eq!(sample.spec.columns[0].format.as_deref(), Some("%d.%m.%Y%? %H:%M:%S"));
    let days = sample.columns[0].midnights.clone().unwrap();
    assert_eq!((days.count, days.first.as_str(), days.line, sample.rejected), (4, "13.02.2024", 2, 0));
    let times = sample.batches[0].column(0).as_primitive::<TimestampMicrosecondType>();
    assert_eq!(times.value(1) - times.value(0), 3_600_000_000);
}

#[test]
fn days_of_a_spreadsheet_may_be_called_time() {
    let first = |text: &str| columns_of(text).remove(0);
    assert_eq!(first("Time,v\n45323.000000,1\n45323.003472,2\n"), "Time Timestamp excel -");
    assert_eq!(first("Time,v\n0.000000,1\n45323.003472,2\n"), "Time Decimal { precision: 13, scale: 6 } - -");
}

#[test]
fn later_columns_of_one_name_have_a_number() {
    let text = "time,km,km\n2024-01-13 00:00,1.5,1500.0\n2024-01-14 00:00,2.5,2500.0\n";
    let sample = sample_of("a.csv", text.as_bytes()).unwrap();
    assert_eq!(sample.doubled, ["km_2"]);
    let kinds: Vec<&str> = sample.spec.columns.iter().map(|column| column.name.as_str()).collect();
    assert_eq!((kinds, sample.batches[0].column(2).null_count()), (vec!["time", "km", "km_2"], 0));
}

#[test]
fn a_header_longer_than_its_rows_names_columns_by_place() {
    let rows: String = (0..20).map(|at| format!("X,{},Q0{},9.{at}\n", 1959 + at / 4, at % 4 + 1)).collect();
    let sample =
        sample_of("a.csv", format!("Series Id: X\n\nRate\n\nid,Year,Period,Value,\n{rows}").as_bytes()).unwrap();
    assert_eq!((sample.spec.csv.header, sample.spec.csv.skip, row_count(&sample)), (false, 5, 20));
    let names: Vec<&str> = sample.spec.columns.iter().map(|column| column.name.as_str()).collect();
    assert_eq!((names, sample.unnamed.len()), (vec!["id", "Year", "Period", "Value"], 0));
}

#[test]
fn a_line_of_widths_is_no_row() {
    let rows: String = (0..9).map(|at| format!("USGS\t01646500\t2024-03-01 0{at}:00\t900{at}\n")).collect();
    let text = format!("# USGS\nagency_cd\tsite_no\tdatetime\tflow\n5s\t15s\t20d\t14n\n{rows}");
    let sample = sample_of("a.txt", text.as_bytes()).unwrap();
    let kinds: Vec<FieldType> = sample.spec.columns.iter().map(|column| column.kind).collect();
    assert_eq!(kinds, [FieldType::Text, FieldType::Text, FieldType::Timestamp, FieldType::Int64]);
    assert_eq!(sample.columns[2].odd.as_ref().map(|odd| (odd.first.as_str(), odd.line)), Some(("20d", 3)));
}

#[test]
fn logs_and_points_are_named() {
    let error = |text: &str| sample_of("a.txt", text.as_bytes()).unwrap_err().to_string();
    let log: String = (0..9).map(|at| format!("May 13 00:00:0{at} h1 app[2{at}]: took 9{at} ms, ok\n")).collect();
    assert!(error(&log).contains("as in a log"), "{}", error(&log));
    let points: String = (0..9).map(|at| format!("weather,city=Gent temp=2{at}.4,hum=64i 170406720{at}\n")).collect();
    assert!(error(&points).contains("line protocol"), "{}", error(&points));
    // A log whose lines split into a time and values is a table without a header.
    let table: String = (0..9).map(|at| format!("2024-01-01 00:00:0{at},up,{at}\n")).collect();
    assert!(!sample_of("a.txt", table.as_bytes()).unwrap().spec.csv.header);
}

#[test]
fn digits_are_seconds_unless_they_are_steady_as_a_calendar_alone() {
    let format = |digits: &dyn Fn(usize) -> String| {
        let sample = sample_of("a.csv", rows("t,v", 15, |at| format!("{},{at}", digits(at))).as_bytes()).unwrap();
        (sample.spec.columns[0].format.clone(), sample.columns[0].also.clone())
    };
    let [seconds, calendar] = ["s", "%y%m%d%H%M"].map(|format| Some(format.to_owned()));
    assert_eq!(format(&|at| format!("{}", 1_709_251_200 + at)), (seconds.clone(), calendar.clone()));
    assert_eq!(format(&|at| format!("{}", 1_709_250_000 + at * 100)), (seconds, calendar.clone()));
    assert_eq!(format(&|at| format!("17092512{:02}", at * 4)), (Some("s".to_owned()), calendar.clone()));
    assert_eq!(format(&|at| format!("170925{:02}{:02}", at / 4, at % 4 * 15)), (calendar.clone(), None));
    // In seconds, these are of 2036.
    assert_eq!(format(&|at| format!("21040100{at:02}")), (calendar, None));
    let ticks = rows("time,v", 15, |at| format!("{},{at}", 638_400_000_000_000_000 + at * 600_000_000));
    assert_eq!(sample_of("a.csv", ticks.as_bytes()).unwrap().spec.columns[0].kind, FieldType::Int64);
}

#[test]
fn a_header_of_numbers_with_units_or_times_is_none() {
    let has_header = |text: &str| sample_of("a.csv", text.as_bytes()).unwrap().spec.csv.header;
    let units: String = (0..9).map(|at| format!("+1.20{at}E+00VDC,+{at}.250SECS,+0000{at}RDNG#\n")).collect();
    assert!(!has_header(&units));
    let times: String = (1..9).map(|at| format!("pump{at},Mo 0{at}.Jan 2024 0{at}h00,{at}.5kW\n")).collect();
    assert!(!has_header(&times));
    for header in ["unit,2020 kWh,2021 kWh\na,5 kWh,6 kWh\nb,7 kWh,8 kWh\n", "s1,s2\na1,b2\na2,b3\n"] {
        assert!(has_header(header), "{header}");
    }
    let dump: String =
        (0..9).map(|at| format!("{{n=\"load\", i=\"w{at}\", job=\"n\"}} 1.5{at} 170925120000{at}\n")).collect();
    assert!(sample_of("a.txt", dump.as_bytes()).unwrap_err().to_string().contains("as in a log"));
}

#[test]
fn a_short_header_behind_a_preamble_is_not_thrown_away() {
    let rows: String = (0..9).map(|at| format!("2024-01-01T0{at}:00:00Z,n{at},0.{at},ok\n")).collect();
    let short = sample_of("a.csv", format!("Logger 3\nexported 2024\ntime,node,temp\n{rows}").as_bytes());
    let error = short.unwrap_err().to_string();
    assert!(error.contains("the header has 3 names, and line 4 has 4 values"), "{error}");

    let blank = rows.replace(",ok", ",");
    let sample = sample_of("a.csv", format!("Logger 3\n\ntime,node,temp\n{blank}").as_bytes()).unwrap();
    assert_eq!((sample.spec.csv.header, sample.spec.csv.skip, row_count(&sample)), (true, 2, 9));
    assert_eq!(sample.spec.columns[0].name, "time");
}

#[test]
fn two_forms_of_times_and_markers_alone_are_told() {
    let text = rows("ts,flow", 20, |at| match at < 10 {
        true => format!("{},-999", 1_709_251_200 + at),
        false => format!("{},-999", (1_709_251_200 + at) * 1000),
    });
    let sample = sample_of("a.csv", text.as_bytes()).unwrap();
    assert_eq!(sample.columns[0].two_forms, Some(("1709251200".to_owned(), "1709251210000".to_owned())));
    assert_eq!(sample.columns[1].only_nines.as_deref(), Some("-999"));
    let days = rows("date,v", 20, |at| match at % 3 {
        0 => format!("2024-01-{:02},1", at + 1),
        _ => format!("{:02}.01.2024,1", at + 1),
    });
    let sample = sample_of("a.csv", days.as_bytes()).unwrap();
    assert_eq!(sample.columns[0].two_forms, Some(("2024-01-01".to_owned(), "02.01.2024".to_owned())));
}
