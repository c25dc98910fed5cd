//! Queries that people ask beside those that scans were made for: those of `just bench-sql --general`, on few readings.

use tidetable_sql::SessionOptions;

use super::{fields, rows, worlds};
use crate::run;

const QUERIES: [&str; 46] = [
    "SELECT CAST(ts AS DATE), sum(kwh), avg(kwh), max(kwh) FROM T GROUP BY 1",
    "SELECT meter, sum(kwh) FROM T WHERE extract(hour FROM ts) < 6 GROUP BY 1 ORDER BY 2 DESC NULLS LAST, 1 LIMIT 10",
    "SELECT count(*), sum(kwh) FROM T WHERE kwh > 990",
    "SELECT count(*), sum(kwh) FROM T WHERE kwh > 100",
    "SELECT CAST(ts AS DATE), sum(kwh) FROM T WHERE extract(hour FROM ts) BETWEEN 17 AND 20 GROUP BY 1",
    "SELECT count(*), avg(kwh) FROM T WHERE extract(dow FROM ts) IN (0, 6)",
    "SELECT count(*), max(kwh) FROM T WHERE ts >= '2018-01-02' AND ts < '2018-01-03' AND kwh > 900",
    "SELECT CAST(ts AS DATE), round(stddev(kwh), 6) FROM T GROUP BY 1",
    "SELECT round(corr(kwh, extract(hour FROM ts)), 6) FROM T",
    "SELECT meter, count(*), sum(kwh), min(kwh), max(kwh) FROM T GROUP BY 1",
    "SELECT ts, sum(kwh) FROM T GROUP BY 1",
    "SELECT date_trunc('hour', ts), avg(kwh) FROM T GROUP BY 1",
    "SELECT extract(dow FROM ts), extract(hour FROM ts), sum(kwh) FROM T GROUP BY 1, 2",
    "SELECT meter, extract(hour FROM ts), sum(kwh) FROM T GROUP BY 1, 2",
    "SELECT CAST(floor(kwh / 10) AS BIGINT), count(*) FROM T GROUP BY 1",
    "SELECT count(DISTINCT kwh) FROM T",
    "SELECT count(DISTINCT meter) FROM T WHERE ts >= '2018-01-02' AND ts < '2018-01-03'",
    "SELECT max(d) FROM (SELECT kwh - lag(kwh) OVER (PARTITION BY meter ORDER BY ts, kwh) AS d FROM T)",
    "SELECT meter, kwh FROM (SELECT meter, kwh, rank() OVER (PARTITION BY ts ORDER BY kwh DESC) AS n FROM T) WHERE n = 1",
    "SELECT max(a) FROM (SELECT sum(kwh) OVER (PARTITION BY meter ORDER BY ts, kwh ROWS 3 PRECEDING) AS a FROM T)",
    "SELECT meter, ts, kwh FROM (SELECT meter, ts, kwh, row_number() OVER (PARTITION BY meter ORDER BY kwh DESC, ts) AS n FROM T) \
     WHERE n = 1",
    "SELECT d, meter, kwh FROM (SELECT CAST(ts AS DATE) AS d, meter, kwh, row_number() OVER (PARTITION BY CAST(ts AS DATE) \
     ORDER BY kwh DESC, meter, ts) AS n FROM T) WHERE n <= 3",
    "SELECT count(*) FROM T AS a JOIN T AS b ON a.meter = b.meter AND a.ts = b.ts + INTERVAL '1 day' WHERE a.kwh > 3 * b.kwh",
    "SELECT max(w) FROM (SELECT sum(s) OVER (PARTITION BY meter ORDER BY d ROWS 6 PRECEDING) AS w FROM \
     (SELECT meter, CAST(ts AS DATE) AS d, sum(kwh) AS s FROM T GROUP BY 1, 2))",
    "SELECT count(*) FROM (SELECT ts - lag(ts) OVER (PARTITION BY meter ORDER BY ts) AS d FROM T) WHERE d > INTERVAL '1 hour'",
    "SELECT sum(kwh) FROM (SELECT kwh FROM T WHERE ts < '2018-01-02' UNION ALL SELECT kwh FROM T WHERE ts >= '2018-01-03')",
    "WITH days AS (SELECT CAST(ts AS DATE) AS d, sum(kwh) AS s FROM T GROUP BY 1) \
     SELECT d, s FROM days WHERE s > (SELECT avg(s) FROM days)",
    "SELECT kwh, count(*), sum(meter) FROM T GROUP BY 1",
    "SELECT tag, count(*), count(DISTINCT kwh) FROM T WHERE kwh > 10 GROUP BY 1",
    "SELECT round(var_samp(kwh), 6), round(var_pop(kwh), 6), round(stddev_pop(kwh), 6) FROM T",
    "SELECT round(covar_samp(kwh, meter), 6), round(covar_pop(meter, kwh), 6), round(corr(meter, kwh), 6) FROM T WHERE kwh > 1",
    "SELECT meter, round(corr(kwh, extract(hour FROM ts)), 6), round(var_samp(kwh), 6) FROM T GROUP BY 1",
    "SELECT stddev(kwh * 0 + 0.1), corr(kwh * 0 + 0.1, kwh), var_samp(0.7 - kwh * 0), covar_pop(kwh, kwh * 0 + 0.1) FROM T",
    "SELECT CAST(ts AS DATE), meter, stddev(kwh * 0 + 0.1), corr(kwh, kwh * 0 + 0.1), var_pop(0.7 - kwh * 0) FROM T GROUP BY 1, 2",
    "SELECT meter, round(covar_samp(kwh, extract(hour FROM ts)), 6), round(corr(kwh, extract(epoch FROM ts)), 6) FROM T GROUP BY 1",
    "SELECT DISTINCT kwh FROM T WHERE kwh > 10",
    "SELECT DISTINCT ON (meter) meter, ts FROM T ORDER BY meter, ts DESC",
    "SELECT count(*), sum(kwh) FROM T WHERE kwh >= 0",
    "SELECT meter, ts, kwh FROM T WHERE kwh > 99.5 AND kwh <= 700 AND 650 > kwh",
    "SELECT ts, kwh, tag FROM T WHERE kwh > 30 AND tag = 'a'",
    "SELECT meter, ts, kwh FROM T WHERE kwh IS NOT NULL AND kwh >= 1",
    "SELECT meter, ts, kwh, lag(kwh, 5) OVER (PARTITION BY meter ORDER BY ts, kwh) FROM T",
    "SELECT meter, kwh, lag(kwh) OVER (ORDER BY meter, ts, kwh) AS b, sum(kwh) OVER (ORDER BY meter, ts, kwh ROWS 9 PRECEDING) FROM T",
    "SELECT meter, ts, avg(kwh) OVER w, count(kwh) OVER w, count(*) OVER w, min(kwh) OVER w, max(kwh) OVER w, sum(meter) OVER w \
     FROM T WINDOW w AS (PARTITION BY meter ORDER BY ts, kwh ROWS BETWEEN 6 PRECEDING AND CURRENT ROW)",
    "SELECT meter, ts, max(kwh) OVER (PARTITION BY meter ORDER BY ts, kwh ROWS 500 PRECEDING) FROM T",
    "SELECT sum(kwh) FILTER (WHERE kwh > 5) OVER (PARTITION BY meter ORDER BY ts, kwh ROWS 2 PRECEDING), \
     count(*) OVER (PARTITION BY meter ORDER BY ts, kwh ROWS BETWEEN 3 PRECEDING AND 1 FOLLOWING) FROM T",
];

#[tokio::test]
async fn general_queries_give_what_they_give_without_pushdown() {
    let mut compared = 0;
    for (name, world) in worlds() {
        let plain = world.open(&SessionOptions { without_push_down: true, ..SessionOptions::default() });
        let frame = plain.sql("SELECT * FROM T").await.unwrap();
        let has = fields(frame.schema().fields().iter().map(|field| field.name().clone()).collect());
        let session = world.session();
        for query in QUERIES.iter().filter(|query| has(query)) {
            let expected = rows(&run(&plain, query).await);
            assert_eq!(rows(&run(&session, query).await), expected, "{name}: {query}");
            compared += 1;
        }
    }
    assert!(compared > 300, "{compared}");
}
