//! Sums beyond 64 bits: row sums stored in SSTs, sums of stripes, and total sums.

use arrow::array::AsArray;
use arrow::datatypes::{Int64Type, UInt64Type};
use tidetable_layout::spec::FamilySpec;
use tidetable_layout::{FieldType, TableSpec};
use tidetable_source::ColumnSpec as SourceColumn;
use tidetable_sql::SessionOptions;

use super::run;
use super::world::{World, column};

const READINGS: i64 = 24;
const PART: i64 = i64::MAX / 4;

/// Days of two meters whose values cancel out.
fn world() -> World {
    let columns = vec![
        SourceColumn::new("meter", FieldType::UInt64),
        SourceColumn::new("ts", FieldType::Timestamp),
        SourceColumn::new("v", FieldType::Int64),
        SourceColumn::new("u", FieldType::UInt64),
    ];
    let family = |name: &str, value: &str| FamilySpec {
        name: name.to_owned(),
        columns: vec![column("{ts:%H%M}", value)],
        ..FamilySpec::default()
    };
    let spec = TableSpec {
        name: "T".to_owned(),
        row_key: "{meter:02}#{ts:%Y%m%d}".to_owned(),
        families: vec![family("V", "{v}"), family("U", "{u}")],
        ..TableSpec::default()
    };
    let mut csv = String::from("meter,ts,v,u\n");
    for day in 1..=3 {
        for at in 0..READINGS {
            csv.push_str(&format!("1,2018-01-{day:02}T{at:02}:00:00Z,{PART},{}\n", u64::MAX / 4));
            csv.push_str(&format!("2,2018-01-{day:02}T{at:02}:00:00Z,{},1\n", -PART));
            csv.push_str(&format!("3,2018-01-{day:02}T{at:02}:00:00Z,{at},{at}\n"));
        }
    }
    World::with_table(columns, spec, &[], &csv)
}

#[tokio::test]
async fn sums_are_right_or_fail() {
    let world = world();
    for without_push_down in [false, true] {
        for partitions in [1, 3] {
            let session = world.open(&SessionOptions {
                target_partitions: Some(partitions),
                without_push_down,
                ..SessionOptions::default()
            });
            let of_three = (0..READINGS).sum::<i64>() * 3;
            // The values of the other meter bring the sum back into range.
            let all = run(&session, "SELECT sum(v) FROM T").await;
            assert_eq!(all[0].column(0).as_primitive::<Int64Type>().value(0), of_three);
            let by_day = "SELECT CAST(ts AS DATE) AS d, sum(v) AS s, sum(v + 0) FROM T GROUP BY d ORDER BY d";
            for batch in run(&session, by_day).await {
                for column in [1, 2] {
                    let sums = batch.column(column).as_primitive::<Int64Type>();
                    assert!(sums.values().iter().all(|sum| *sum == of_three / 3), "{sums:?}");
                }
            }
            let third = run(&session, "SELECT sum(u), sum(v) FROM T WHERE meter = 3").await;
            assert_eq!(third[0].column(0).as_primitive::<UInt64Type>().value(0), of_three.cast_unsigned());
            for query in [
                "SELECT sum(u) FROM T",
                "SELECT sum(v) FROM T WHERE meter = 1",
                "SELECT meter, sum(v) FROM T GROUP BY meter",
                "SELECT meter, CAST(ts AS DATE), sum(v) FROM T GROUP BY 1, 2",
                "SELECT meter, sum(u) FROM T GROUP BY meter",
                "SELECT ts, sum(v * 5) FROM T GROUP BY ts",
                "SELECT sum(v) OVER (PARTITION BY meter ORDER BY ts) FROM T",
                "SELECT sum(v) OVER (PARTITION BY meter ORDER BY ts ROWS BETWEEN 9 PRECEDING AND CURRENT ROW) FROM T",
            ] {
                let failed = async { session.sql(query).await?.collect().await.map_err(tidetable_sql::SqlError::from) };
                let told = failed.await.unwrap_err().to_string();
                assert!(told.contains("does not fit into"), "{query}: {told}");
            }
            let wide = "SELECT CAST(sum(CAST(u AS DECIMAL(38, 0))) AS VARCHAR) FROM T WHERE meter < 3";
            let wide = run(&session, wide).await;
            let expected = i128::from(u64::MAX / 4) * i128::from(READINGS) * 3 + i128::from(READINGS) * 3;
            assert_eq!(
                wide[0].column(0).as_string_view_opt().map(|text| text.value(0).to_owned()).unwrap_or_else(|| wide[0]
                    .column(0)
                    .as_string::<i32>()
                    .value(0)
                    .to_owned()),
                expected.to_string()
            );
        }
    }
}
