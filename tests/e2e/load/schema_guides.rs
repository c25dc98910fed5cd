//! Cases of the schema-design guides as jobs on sample data: exact keys and cells, and SQL that returns the source.

use std::fs;
use std::path::Path;

use serde_json::json;

use crate::harness::cells::{cell_bytes, cell_integer, micros};
use crate::harness::{Project, repository};

/// The job and its sample data in a project of their own, not yet run.
fn copied(job: &str) -> Project {
    let folder = repository().join("jobs").join(job);
    let project = Project::new(job, &fs::read_to_string(folder.join("job.toml")).unwrap());
    copy(&project, &folder, &format!("jobs/{job}"), "sql");
    copy(&project, &repository().join("sample-data").join(job), &format!("sample-data/{job}"), "csv");
    project
}

/// Copies the files of a directory with these extensions.
fn copy(project: &Project, from: &Path, to: &str, ending: &str) {
    for file in fs::read_dir(from).unwrap() {
        let path = file.unwrap().path();
        if path.extension().is_some_and(|found| found == ending) {
            let name = path.file_name().unwrap().to_str().unwrap();
            project.write(&format!("{to}/{name}"), fs::read(&path).unwrap());
        }
    }
}

/// The job after a run that took every row.
fn ran(job: &str) -> Project {
    let project = copied(job);
    let record = project.run_job(job);
    assert_eq!(record["outcome"], "ok");
    for load in record["loads"].as_array().unwrap() {
        assert_eq!(load["rows_rejected"], 0, "{load}");
    }
    project
}

/// The cells of a table, each as `KEY FAMILY:QUALIFIER=VALUE @MILLISECONDS`.
fn cells(project: &Project, table: &str, more: &[&str]) -> Vec<String> {
    let mut lines = Vec::new();
    for row in project.json(&[&["read", table], more].concat()) {
        for cell in row["cells"].as_array().unwrap() {
            let text = |name: &str| cell[name].as_str().unwrap().to_owned();
            let key = row["key"].as_str().unwrap();
            let millis = micros(&cell["timestamp"]) / 1000;
            lines.push(format!("{key} {}:{}={} @{millis}", text("family"), text("qualifier"), text("value")));
        }
    }
    lines
}

/// The fields of each row of a source file, and the names of its columns.
fn source(project: &Project, file: &str) -> (Vec<String>, Vec<Vec<String>>) {
    let text = project.read(&format!("sample-data/{file}.csv"));
    let mut rows = text.lines().map(|line| line.split(',').map(str::to_owned).collect::<Vec<String>>());
    (rows.next().unwrap(), rows.collect())
}

/// A time of a source file as SQL prints it.
fn printed(time: &str) -> String {
    time.replace(".000Z", "Z")
}

/// Checks that the query returns these lines of CSV, in any order.
fn returns(project: &Project, query: &str, mut expected: Vec<String>) {
    let answer = project.csv(query);
    let mut lines: Vec<String> = answer.lines().skip(1).map(str::to_owned).collect();
    lines.sort_unstable();
    expected.sort_unstable();
    assert!(!expected.is_empty());
    assert_eq!(lines, expected, "{query}");
}

/// Checks that the table has the columns of the source except `without`, for rows with a field that is `only`.
fn reads_back(project: &Project, table: &str, file: &str, without: &[&str], only: &str) {
    let (header, rows) = source(project, file);
    let kept: Vec<usize> = (0..header.len()).filter(|at| !without.contains(&header[*at].as_str())).collect();
    let names: Vec<String> = kept.iter().map(|at| format!("\"{}\"", header[*at])).collect();
    let taken = rows.iter().filter(|row| only.is_empty() || row.iter().any(|field| field == only));
    let lines = taken.map(|row| kept.iter().map(|at| printed(&row[*at])).collect::<Vec<_>>().join(",")).collect();
    returns(project, &format!("select {} from {table}", names.join(", ")), lines);
}

#[test]
fn metrics_have_a_row_per_instant() {
    let project = ran("server-metrics");
    let row = cells(&project, "METRIC", &["--row", "server1.bbb.com#1795259524336"]);
    assert_eq!(row.len(), 77);
    for cell in [
        "server1.bbb.com#1795259524336 METRIC:HOSTNAME=server1.bbb.com @0",
        "server1.bbb.com#1795259524336 METRIC:CPU/CPU1_USR=0.98 @1795259524336",
        "server1.bbb.com#1795259524336 METRIC:CPU/CPU1_NICE=0.00 @1795259524336",
        "server1.bbb.com#1795259524336 METRIC:IO/BLK_READ=48275506 @1795259524336",
        "server1.bbb.com#1795259524336 METRIC:IO/BLK_WRTN=123976408 @1795259524336",
    ] {
        assert!(row.iter().any(|found| found == cell), "{cell}: {row:?}");
    }
    reads_back(&project, "METRIC", "server-metrics/2026-11-21", &[], "");
    let rollup = project.sql("select host, samples, peak_load, blocks_read from exports.METRIC_ROLLUP_20261121");
    let expected = json!({ "host": "server1.bbb.com", "samples": 61, "peak_load": 2.02, "blocks_read": 92264 });
    assert_eq!(rollup, [expected]);
}

#[test]
fn missing_metric_stores_no_cell() {
    let project = copied("server-metrics");
    let (header, _) = source(&project, "server-metrics/2026-11-21");
    let row: Vec<&str> = header
        .iter()
        .map(|name| match name.as_str() {
            "host" => "server1.bbb.com",
            "ts" => "2015-03-16T19:53:32.045Z",
            "CPU/CPU1_USR" => "0.02",
            "CPU/CPU1_NICE" => "0.00",
            "IO/BLK_READ" => "253453634",
            "IO/BLK_WRTN" => "657365234",
            _ => "",
        })
        .collect();
    project.write("sample-data/server-metrics/2026-11-21.csv", format!("{}\n{}\n", header.join(","), row.join(",")));
    project.run_job("server-metrics");
    assert_eq!(
        cells(&project, "METRIC", &[]),
        [
            "server1.bbb.com#1426535612045 METRIC:CPU/CPU1_NICE=0.00 @1426535612045",
            "server1.bbb.com#1426535612045 METRIC:CPU/CPU1_USR=0.02 @1426535612045",
            "server1.bbb.com#1426535612045 METRIC:HOSTNAME=server1.bbb.com @0",
            "server1.bbb.com#1426535612045 METRIC:IO/BLK_READ=253453634 @1426535612045",
            "server1.bbb.com#1426535612045 METRIC:IO/BLK_WRTN=657365234 @1426535612045",
        ]
    );
    reads_back(&project, "METRIC", "server-metrics/2026-11-21", &[], "");
}

#[test]
fn message_is_stored_as_quote_and_trade() {
    let project = ran("market-data");
    assert_eq!(
        cells(&project, "QUOTE", &["--row", "NASDAQ#ZXZZT#1426535612156"]),
        [
            "NASDAQ#ZXZZT#1426535612156 MD:ASK=600.60 @1426535612156",
            "NASDAQ#ZXZZT#1426535612156 MD:ASKSIZE=1500 @1426535612156",
            "NASDAQ#ZXZZT#1426535612156 MD:BID=600.55 @1426535612156",
            "NASDAQ#ZXZZT#1426535612156 MD:BIDSIZE=500 @1426535612156",
            "NASDAQ#ZXZZT#1426535612156 MD:EXCHANGE=NASDAQ @0",
            "NASDAQ#ZXZZT#1426535612156 MD:QUOTETIME=1426535612156 @0",
            "NASDAQ#ZXZZT#1426535612156 MD:SYMBOL=ZXZZT @0",
        ]
    );
    assert_eq!(
        cells(&project, "TRADE", &["--row", "NASDAQ#ZXZZT#1426535612045"]),
        [
            "NASDAQ#ZXZZT#1426535612045 MD:EXCHANGE=NASDAQ @0",
            "NASDAQ#ZXZZT#1426535612045 MD:LASTSALE=600.58 @1426535612045",
            "NASDAQ#ZXZZT#1426535612045 MD:LASTSIZE=300 @1426535612045",
            "NASDAQ#ZXZZT#1426535612045 MD:SYMBOL=ZXZZT @0",
            "NASDAQ#ZXZZT#1426535612045 MD:TRADETIME=1426535612045 @0",
            "NASDAQ#ZXZZT#1426535612045 MD:VOLUME=89000 @1426535612045",
        ]
    );
    let padded = &cells(&project, "TRADE", &["--prefix", "NYSE  #", "--limit", "1"])[0];
    assert!(padded.starts_with("NYSE  #CTEST#14"), "{padded}");
}

#[test]
fn market_messages_read_back() {
    let project = ran("market-data");
    let mut messages = source(&project, "market-data/2015-03-16").1;
    messages.extend(source(&project, "market-data/2015-03-17").1);
    assert_eq!(messages.len(), 1401);
    let side = |parts: [usize; 5], time: usize| -> Vec<String> {
        let line = |row: &Vec<String>| {
            let fields = parts.map(|at| row[at].as_str()).join(",");
            format!("{fields},{}", printed(&format!("{}Z", row[time])))
        };
        messages.iter().filter(|row| !row[time].is_empty()).map(line).collect()
    };
    // The files have the local time of Los Angeles.
    returns(
        &project,
        "select exchange, symbol, bid, ask, bid_size, quote_time - interval '7 hours' as t from QUOTE",
        side([0, 1, 2, 3, 4], 9),
    );
    returns(
        &project,
        "select exchange, symbol, last_sale, last_size, volume, trade_time - interval '7 hours' as t from TRADE",
        side([0, 1, 6, 7, 8], 10),
    );
    let busy = messages.iter().filter(|row| ["ZXZZT", "ZVZZT", "NTEST"].contains(&row[1].as_str()));
    assert!(busy.count() * 10 >= messages.len() * 9, "three tickers have nine messages of ten");
}

#[test]
fn daily_trades_have_a_row_per_ticker() {
    let project = ran("market-data");
    let rollup = project.ok(&[
        "sql",
        "--output",
        "csv",
        "-c",
        "select * from exports.TRADE_ROLLUP_20150316 where symbol = 'ZXZZT'",
    ]);
    assert_eq!(
        rollup.lines().collect::<Vec<_>>(),
        ["exchange,symbol,open,high,low,close,volume,trades", "NASDAQ,ZXZZT,600.58,600.94,600.53,600.58,89000,38"]
    );
    assert_eq!(project.sql("select count(*) as n from exports.TRADE_ROLLUP"), [json!({ "n": 20 })]);
}

#[test]
fn soundings_read_back_in_five_layouts() {
    let project = ran("weather-balloons");
    let file = "weather-balloons/1999-05-04";
    reads_back(&project, "BALLOON_EVENTS", file, &[], "");
    reads_back(&project, "BALLOON_NEW_CELLS", file, &[], "");
    reads_back(&project, "BALLOON_EVENTS_SERIALIZED", file, &[], "");
    reads_back(&project, "BALLOON_WEEK_SERIALIZED", file, &[], "");
    let (header, rows) = source(&project, file);
    let mut long = Vec::new();
    for row in &rows {
        for (name, value) in header.iter().zip(row).skip(2).filter(|(_, value)| !value.is_empty()) {
            long.push(format!("{},{},{name},{value}", row[0], printed(&row[1])));
        }
    }
    returns(&project, "select station, ts, metric, value from BALLOON_NEW_COLUMNS", long.clone());

    let tables = project.json(&["tables"]);
    let sizes = |name: &str| {
        let table = tables.iter().find(|table| table["name"] == name).unwrap();
        (table["rows"].as_u64().unwrap(), table["cells"].as_u64().unwrap())
    };
    let measured = long.len() as u64;
    assert_eq!(sizes("BALLOON_NEW_COLUMNS"), (24 * 6, measured));
    assert_eq!(sizes("BALLOON_NEW_CELLS"), (24, measured));
    assert_eq!(sizes("BALLOON_EVENTS"), (rows.len() as u64, measured));
    assert_eq!(sizes("BALLOON_EVENTS_SERIALIZED"), (rows.len() as u64, rows.len() as u64));
    assert_eq!(sizes("BALLOON_WEEK_SERIALIZED"), (24, 24));
}

#[test]
fn level_has_the_documented_cells_in_three_layouts() {
    let project = ran("weather-balloons");
    // 960 hPa at 386 m, 71.2 s after the start.
    let at = |table: &str, key: &str| -> Vec<String> {
        let all = cells(&project, table, &["--row", key]);
        all.into_iter().filter(|cell| cell.ends_with(" @925776071200")).collect()
    };
    assert_eq!(
        at("BALLOON_NEW_COLUMNS", "CWPL#pressure#1999-W18"),
        ["CWPL#pressure#1999-W18 measurements:960.0= @925776071200"]
    );
    let columns = [
        "altitude=386.0",
        "dewpoint=1.0",
        "pressure=960.0",
        "temperature=23.0",
        "wind_direction=160.0",
        "wind_speed=12.0",
    ];
    for (table, key) in [("BALLOON_NEW_CELLS", "CWPL#1999-W18"), ("BALLOON_EVENTS", "CWPL#1999-05-04-000111200")] {
        let expected = columns.map(|column| format!("{key} measurements:{column} @925776071200"));
        assert_eq!(at(table, key), expected);
    }
    let sounding = project.sql("select * from exports.SOUNDING_19990504 where station = 'CWPL'");
    assert_eq!(sounding[0]["levels"], 106);
    assert_eq!(sounding[0]["top_altitude"], 36494.0);
}

/// The bytes of the cells of a table, each with `KEY FAMILY:QUALIFIER @MILLISECONDS`.
fn blobs(project: &Project, table: &str) -> Vec<(String, Vec<u8>)> {
    let mut found = Vec::new();
    for row in project.json(&["read", table]) {
        for cell in row["cells"].as_array().unwrap() {
            let text = |name: &str| cell[name].as_str().unwrap();
            let (key, millis) = (row["key"].as_str().unwrap(), micros(&cell["timestamp"]) / 1000);
            found.push((
                format!("{key} {}:{} @{millis}", text("family"), text("qualifier")),
                cell_bytes(&cell["value"]),
            ));
        }
    }
    found
}

#[test]
fn serialized_soundings_match_the_guide() {
    let project = ran("schema-patterns");
    let first: &[u8] = b"\x08\xde\xe2\x05\x12\x039.6\x18\x3d\x20\xe4\x04";
    let (second, third): (&[u8], &[u8]) = (b"\x08\xaa\xdf\x05", b"\x08\xf8\xed\x05");
    let event = |minute: i64, bytes: &[u8]| {
        let millis = 1_614_945_600_000 + minute * 60_000;
        let name = format!("us-west2#3698#2021-03-05-120{minute} measurements:measurements_blob @{millis}");
        (name, bytes.to_vec())
    };
    assert_eq!(blobs(&project, "BALLOON_EVENT_SERIALIZED"), [event(0, first), event(1, second), event(2, third)]);
    let week = [b"\x0a\x0e", first, b"\x0a\x04", second, b"\x0a\x04", third].concat();
    let name = "us-west2#3698#2021-W09 measurements:measurements_blob @0".to_owned();
    assert_eq!(blobs(&project, "WEEK_SERIALIZED"), [(name, week)]);
    for table in ["BALLOON_EVENT_SERIALIZED", "WEEK_SERIALIZED"] {
        reads_back(&project, table, "schema-patterns/balloons", &["week"], "us-west2");
    }
    let proto = project.ok(&["proto", "WEEK_SERIALIZED"]);
    assert!(
        proto.contains("  optional uint64 pressure = 1;\n") && proto.contains("repeated Measurement measurements = 1;")
    );
}

#[test]
fn key_delimiter_in_a_name_is_escaped() {
    let project = ran("schema-patterns");
    assert_eq!(
        cells(&project, "PAGE", &[]),
        [
            r#"100%25#20200101 PAGE:row={"ts":"2020-01-01T00:00:00Z","title":"José","price":0.00} @1577836800000"#,
            r#"guide%23install#20200101 PAGE:row={"ts":"2020-01-01T00:00:00Z","title":"How to \"install\"","visits":3,"price":600.60} @1577836800000"#,
        ]
    );
    reads_back(&project, "PAGE", "schema-patterns/pages", &[], "");
    assert_eq!(project.sql("select visits from PAGE where page = 'guide#install'"), [json!({ "visits": 3 })]);
}

#[test]
fn row_keys_match_the_guide() {
    let project = ran("schema-patterns");
    assert_eq!(
        cells(&project, "BATTERY", &[]),
        [
            "BATTERY#Corrie#20150301124501003 STATUS:LEVEL=98 @1425213901003",
            "BATTERY#Corrie#20150301124601003 STATUS:LEVEL=97 @1425213961003",
            "BATTERY#Jo#20150301124502003 STATUS:LEVEL=71 @1425213902003",
        ]
    );
    reads_back(&project, "BATTERY", "schema-patterns/battery", &[], "");
    assert_eq!(
        cells(&project, "BATTERY_SALTED", &[]),
        [
            "BATTERY#1#20150301124501003 STATUS:LEVEL=98 @1425213901003",
            "BATTERY#1#20150301124501003 STATUS:USER=Corrie @1425213901003",
            "BATTERY#3#20150301124502003 STATUS:LEVEL=71 @1425213902003",
            "BATTERY#3#20150301124502003 STATUS:USER=Jo @1425213902003",
            "BATTERY#3#20150301124601003 STATUS:LEVEL=97 @1425213961003",
            "BATTERY#3#20150301124601003 STATUS:USER=Corrie @1425213961003",
        ]
    );
    reads_back(&project, "BATTERY_SALTED", "schema-patterns/battery", &[], "");
    assert_eq!(
        cells(&project, "GAMES_BY_PLAYER", &[]),
        [
            "LoL#Corrie#20150301 GAME:KDA=4.25 @1425168000000",
            "LoL#Corrie#20150301 GAME:WIN=true @1425168000000",
            "LoL#Corrie#20150302 GAME:KDA=2.00 @1425254400000",
            "LoL#Corrie#20150302 GAME:WIN=false @1425254400000",
            "LoL#Jo#20150301 GAME:KDA=1.50 @1425168000000",
            "LoL#Jo#20150301 GAME:WIN=false @1425168000000",
        ]
    );
    reads_back(&project, "GAMES_BY_PLAYER", "schema-patterns/games", &[], "");
    assert_eq!(cells(&project, "WINS_BY_DAY", &[]), ["LoL#20150301#Corrie GAME:KDA=4.25 @1425168000000"]);
    reads_back(&project, "WINS_BY_DAY", "schema-patterns/games", &["win"], "true");
    assert_eq!(
        cells(&project, "MEMORY_USE", &[]),
        [
            "4c410523#memusage#1423523569918 MEMORY:USED=45 @1423523569918",
            "4c410523#memusage#1423523629918 MEMORY:USED=47 @1423523629918",
        ]
    );
    reads_back(&project, "MEMORY_USE", "schema-patterns/memory", &[], "");
    assert_eq!(
        cells(&project, "MACHINE", &[]),
        [
            "machine_4223421#1425330757685 STATUS:LOAD=0.75 @1425330757685",
            "machine_4223421#1425330817685 STATUS:LOAD=0.50 @1425330817685",
        ]
    );
    reads_back(&project, "MACHINE", "schema-patterns/machines", &[], "");
    assert_eq!(
        cells(&project, "MACHINE_NEWEST_FIRST", &[]),
        [
            "machine_4223421#9223370611523958122 STATUS:LOAD=0.50 @1425330817685",
            "machine_4223421#9223370611524018122 STATUS:LOAD=0.75 @1425330757685",
        ]
    );
    reads_back(&project, "MACHINE_NEWEST_FIRST", "schema-patterns/machines", &[], "");
    assert_eq!(
        cells(&project, "USER", &[]),
        ["100001 PROFILE:NAME=Fred @1577836800000", "200001 PROFILE:NAME=Gabriel @1577836801000"]
    );
    reads_back(&project, "USER", "schema-patterns/users", &[], "");
    assert_eq!(
        cells(&project, "DEVICE", &[]),
        [
            "phone#4c410523#20200501 STATUS:CONNECTED=true @1588291200000",
            "tablet#a0b81f74#20200502 STATUS:CONNECTED=false @1588377600000",
        ]
    );
    reads_back(&project, "DEVICE", "schema-patterns/devices", &[], "");
    assert_eq!(
        cells(&project, "TENANT_DEVICE", &[]),
        [
            "altostrat#phone#4c410523#20190501 STATUS:CONNECTED=true @1556668800000",
            "examplepetstore#tablet#a6b81f79#20190501 STATUS:CONNECTED=true @1556668800000",
        ]
    );
    reads_back(&project, "TENANT_DEVICE", "schema-patterns/tenants", &[], "");
    project.ok(&["drop-rows", "TENANT_DEVICE", "--prefix", "altostrat#", "--yes"]);
    let other = ["examplepetstore#tablet#a6b81f79#20190501 STATUS:CONNECTED=true @1556668800000"];
    assert_eq!(cells(&project, "TENANT_DEVICE", &[]), other, "a tenant is removed by its prefix");
    project.ok(&["compact", "TENANT_DEVICE"]);
    assert_eq!(cells(&project, "TENANT_DEVICE", &[]), other);
    assert_eq!(
        cells(&project, "PLACE", &[]),
        [
            "asia#india#bangalore WEATHER:TEMP=22.5 @1577836800000",
            "southamerica#bolivia#lapaz WEATHER:TEMP=9.0 @1577836800000",
        ]
    );
    reads_back(&project, "PLACE", "schema-patterns/places", &[], "");
    assert_eq!(
        cells(&project, "DOMAIN", &[]),
        [
            "com.google.drive TRAFFIC:VISITS=3 @1577836800000",
            "com.google.maps TRAFFIC:VISITS=4 @1577836800000",
            "org.wikipedia.en TRAFFIC:VISITS=5 @1577836800000",
        ]
    );
    reads_back(&project, "DOMAIN", "schema-patterns/domains", &[], "");
    assert_eq!(
        cells(&project, "NUMBER", &[]),
        ["03 NAME:LABEL=three @1577836800000", "20 NAME:LABEL=twenty @1577836800000"]
    );
    reads_back(&project, "NUMBER", "schema-patterns/numbers", &[], "");
}

#[test]
fn tall_and_wide_rows_match_the_guide() {
    let project = ran("schema-patterns");
    assert_eq!(
        cells(&project, "GARDEN_TALL", &[]),
        [
            "VEGGIEGARDEN#20150301 DAILY:TEMP=60.4 @1425168000000",
            "VEGGIEGARDEN#20150302 DAILY:TEMP=61.2 @1425254400000",
            "VEGGIEGARDEN#20150331 DAILY:TEMP=60.4 @1427760000000",
        ]
    );
    reads_back(&project, "GARDEN_TALL", "schema-patterns/garden", &[], "");
    assert_eq!(
        cells(&project, "GARDEN_WIDE", &[]),
        [
            "VEGGIEGARDEN#20150301 TEMP:1=60.4 @1425168000000",
            "VEGGIEGARDEN#20150301 TEMP:2=61.2 @1425254400000",
            "VEGGIEGARDEN#20150301 TEMP:31=60.4 @1427760000000",
        ]
    );
    reads_back(&project, "GARDEN_WIDE", "schema-patterns/garden", &[], "");
    assert_eq!(
        cells(&project, "SHARE_PRICE", &[]),
        ["ZXZZT#20150301 STOCK:PRICE=558.40 @1425168000000", "ZXZZT#20150302 STOCK:PRICE=571.34 @1425254400000"]
    );
    reads_back(&project, "SHARE_PRICE", "schema-patterns/prices", &[], "");
    assert_eq!(
        cells(&project, "SHARE_PRICE_VERSIONS", &[]),
        ["ZXZZT STOCK:PRICE=571.34 @1425254400000", "ZXZZT STOCK:PRICE=558.40 @1425168000000"]
    );
    reads_back(&project, "SHARE_PRICE_VERSIONS", "schema-patterns/prices", &[], "");
}

#[test]
fn columns_match_the_guide() {
    let project = ran("schema-patterns");
    assert_eq!(
        cells(&project, "PROCESS", &[]),
        [
            "server1#1577836800000 SysMonitor:%CPU=0.1 @1577836800000",
            "server1#1577836800000 SysMonitor:DiskRead=512 @1577836800000",
            "server1#1577836800000 SysMonitor:ID=1 @1577836800000",
            "server1#1577836800000 SysMonitor:Memory=4096 @1577836800000",
            "server1#1577836800000 SysMonitor:Priority=20 @1577836800000",
            "server1#1577836800000 SysMonitor:ProcessName=init @1577836800000",
            "server1#1577836800000 SysMonitor:User=root @1577836800000",
            "server1#1577836805000 SysMonitor:%CPU=0.0 @1577836805000",
            "server1#1577836805000 SysMonitor:ID=42 @1577836805000",
            "server1#1577836805000 SysMonitor:Memory=128 @1577836805000",
            "server1#1577836805000 SysMonitor:Priority=20 @1577836805000",
            "server1#1577836805000 SysMonitor:ProcessName=sleep @1577836805000",
            "server1#1577836805000 SysMonitor:User=guest @1577836805000",
        ]
    );
    reads_back(&project, "PROCESS", "schema-patterns/processes", &[], "");
    assert_eq!(
        cells(&project, "FRIENDS", &[]),
        [
            "José Friends:Fred=book-club @1577836800000",
            "José Friends:Gabriel=work @1577836800000",
            "José Friends:Hiroshi=tennis @1577836800000",
        ]
    );
    reads_back(&project, "FRIENDS", "schema-patterns/friends", &["number"], "");
    assert_eq!(
        cells(&project, "FRIENDS_AS_ROWS", &[]),
        [
            "José#1 Friends:Circle=book-club @1577836800000",
            "José#1 Friends:Friend=Fred @1577836800000",
            "José#2 Friends:Circle=work @1577836800000",
            "José#2 Friends:Friend=Gabriel @1577836800000",
            "José#3 Friends:Circle=tennis @1577836800000",
            "José#3 Friends:Friend=Hiroshi @1577836800000",
        ]
    );
    reads_back(&project, "FRIENDS_AS_ROWS", "schema-patterns/friends", &[], "");
    assert_eq!(
        cells(&project, "RETENTION", &[]),
        [
            "4c410523 HISTORY:COUNT=3 @1577844000000",
            "4c410523 HISTORY:COUNT=2 @1577840400000",
            "4c410523 HISTORY:COUNT=1 @1577836800000",
            "4c410523 LATEST:COUNT=3 @1577844000000",
            "4c410523 RECENT:COUNT=3 @1577844000000",
            "4c410523 RECENT:COUNT=2 @1577840400000",
        ]
    );
    reads_back(&project, "RETENTION", "schema-patterns/counters", &[], "");
}

#[test]
fn aggregates_match_the_guide() {
    let project = ran("schema-patterns");
    let mut sums = Vec::new();
    for row in project.json(&["read", "SALES"]) {
        let key = row["key"].as_str().unwrap();
        let cells = row["cells"].as_array().unwrap();
        assert!(cells.iter().all(|cell| cell["timestamp"] == "1970-01-01T00:00:00Z"));
        for cell in cells.iter().filter(|cell| cell["family"] != "CUSTOMERS") {
            let (family, month) = (cell["family"].as_str().unwrap(), cell["qualifier"].as_str().unwrap());
            sums.push(format!("{key} {family}:{month}={}", cell_integer(&cell["value"])));
        }
    }
    assert_eq!(
        sums,
        [
            "Corrie LARGEST:2015-03=60060",
            "Corrie LARGEST:2015-04=2890",
            "Corrie TOTAL:2015-03=62010",
            "Corrie TOTAL:2015-04=2890",
            "Jo LARGEST:2015-03=9995",
            "Jo LARGEST:2015-04=5",
            "Jo TOTAL:2015-03=9995",
            "Jo TOTAL:2015-04=5",
        ]
    );
    returns(
        &project,
        "select employee, ts, cents from SALES",
        [
            "Corrie,2015-03-01T00:00:00Z,62010",
            "Corrie,2015-04-01T00:00:00Z,2890",
            "Jo,2015-03-01T00:00:00Z,9995",
            "Jo,2015-04-01T00:00:00Z,5",
        ]
        .map(str::to_owned)
        .to_vec(),
    );
    returns(
        &project,
        "select row_key, qualifier, hll_estimate(value) from cells.SALES where family = 'CUSTOMERS'",
        ["Corrie,2015-03,2", "Corrie,2015-04,1", "Jo,2015-03,1", "Jo,2015-04,1"].map(str::to_owned).to_vec(),
    );
    let said = project.ok(&["check", "schema-patterns"]);
    for part in ["`cents` reads back as the sum of the values", "`customer` does not read back: only a sketch"] {
        assert!(said.contains(part), "{said}");
    }
}

#[test]
fn time_buckets_match_the_guide() {
    let project = ran("schema-patterns");
    assert_eq!(
        cells(&project, "WEEK_NEW_COLUMNS", &[]),
        [
            "us-west2#3698#pressure#week1 measurements:94122= @1614945660000",
            "us-west2#3698#pressure#week1 measurements:94558= @1614945600000",
            "us-west2#3698#pressure#week1 measurements:95992= @1614945720000",
        ]
    );
    reads_back(
        &project,
        "WEEK_NEW_COLUMNS",
        "schema-patterns/balloons",
        &["temperature", "humidity", "altitude"],
        "us-west2",
    );
    assert_eq!(
        cells(&project, "WEEK_NEW_CELLS", &[]),
        [
            "asia-south2#3698#week1 measurements:altitude=601 @1614945720000",
            "asia-south2#3698#week1 measurements:altitude=601 @1614945660000",
            "asia-south2#3698#week1 measurements:altitude=601 @1614945600000",
            "asia-south2#3698#week1 measurements:humidity=65 @1614945720000",
            "asia-south2#3698#week1 measurements:humidity=65 @1614945660000",
            "asia-south2#3698#week1 measurements:humidity=65 @1614945600000",
            "asia-south2#3698#week1 measurements:pressure=95992 @1614945720000",
            "asia-south2#3698#week1 measurements:pressure=94122 @1614945660000",
            "asia-south2#3698#week1 measurements:pressure=94558 @1614945600000",
            "asia-south2#3698#week1 measurements:temperature=9.2 @1614945720000",
            "asia-south2#3698#week1 measurements:temperature=9.4 @1614945660000",
            "asia-south2#3698#week1 measurements:temperature=9.5 @1614945600000",
        ]
    );
    reads_back(&project, "WEEK_NEW_CELLS", "schema-patterns/balloons", &[], "asia-south2");
    assert_eq!(
        cells(&project, "BALLOON_EVENT", &[]),
        [
            "us-west2#3698#2021-03-05-1200 measurements:altitude=612 @1614945600000",
            "us-west2#3698#2021-03-05-1200 measurements:humidity=61 @1614945600000",
            "us-west2#3698#2021-03-05-1200 measurements:pressure=94558 @1614945600000",
            "us-west2#3698#2021-03-05-1200 measurements:temperature=9.6 @1614945600000",
            "us-west2#3698#2021-03-05-1201 measurements:pressure=94122 @1614945660000",
            "us-west2#3698#2021-03-05-1202 measurements:pressure=95992 @1614945720000",
        ]
    );
    reads_back(&project, "BALLOON_EVENT", "schema-patterns/balloons", &["week"], "us-west2");
}
