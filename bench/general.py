"""Thirty general queries of the reference: those that people ask beside the ones that the scan was made for."""

DAY, NEXT = "2017-07-30", "2017-07-31"
# The seconds of a reading's interval.
STEP = "15 minutes"


class Bounds:
    """Values that the readings have, whatever their seed: `over[share]` is exceeded by that share of them."""

    SHARES = (0.0001, 0.01, 0.1, 0.9)

    def __init__(self, rows):
        wanted = ", ".join(str(1 - share) for share in self.SHARES)
        ((found,),) = rows(f"SELECT quantile_disc(kwh, [{wanted}]) FROM SENSOR")
        self.over = dict(zip(self.SHARES, found))


def queries(bounds):
    """By name, SQL of both engines, or a pair of tidetable's and DuckDB's."""
    over = lambda share: f"SELECT count(*), sum(kwh) FROM SENSOR WHERE kwh > {bounds.over[share]}"
    ranked = "row_number() OVER (PARTITION BY {} ORDER BY kwh DESC, {}) AS n"
    of_meter = "PARTITION BY meter ORDER BY ts"
    quantile = "SELECT CAST(ts AS DATE), {}(kwh, 0.95) FROM SENSOR GROUP BY 1"
    return {
        "sum, average and peak of days": "SELECT CAST(ts AS DATE), sum(kwh), avg(kwh), max(kwh) FROM SENSOR GROUP BY 1",
        "top ten of the night": "SELECT meter, sum(kwh) FROM SENSOR WHERE extract(hour FROM ts) < 6 GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT 10",
        "over a bound, 0.01 %": over(0.0001),
        "over a bound, 1 %": over(0.01),
        "over a bound, 10 %": over(0.1),
        "over a bound, 90 %": over(0.9),
        "of some hours": "SELECT CAST(ts AS DATE), sum(kwh) FROM SENSOR WHERE extract(hour FROM ts) BETWEEN 17 AND 20 GROUP BY 1",
        "of weekends": "SELECT count(*), avg(kwh) FROM SENSOR WHERE extract(dow FROM ts) IN (0, 6)",
        "of one day and a bound": f"SELECT count(*), max(kwh) FROM SENSOR WHERE ts >= '{DAY}' AND ts < '{NEXT}' AND kwh > {bounds.over[0.1]}",
        "deviation of days": "SELECT CAST(ts AS DATE), stddev(kwh) FROM SENSOR GROUP BY 1",
        "correlation with the hour": "SELECT corr(kwh, extract(hour FROM ts)) FROM SENSOR",
        "95 % quantile of days": (quantile.format("approx_percentile_cont"), quantile.format("approx_quantile")),
        "by meter": "SELECT meter, count(*), sum(kwh), min(kwh), max(kwh) FROM SENSOR GROUP BY 1",
        "by time": "SELECT ts, sum(kwh) FROM SENSOR GROUP BY 1",
        "by hour of each day": "SELECT date_trunc('hour', ts), avg(kwh) FROM SENSOR GROUP BY 1",
        "by weekday and hour": "SELECT extract(dow FROM ts), extract(hour FROM ts), sum(kwh) FROM SENSOR GROUP BY 1, 2",
        "by meter and hour of day": "SELECT meter, extract(hour FROM ts), sum(kwh) FROM SENSOR GROUP BY 1, 2",
        "histogram": "SELECT CAST(floor(kwh * 10) AS BIGINT), count(*) FROM SENSOR GROUP BY 1",
        "distinct values": "SELECT count(DISTINCT kwh) FROM SENSOR",
        "meters of a day": f"SELECT count(DISTINCT meter) FROM SENSOR WHERE ts >= '{DAY}' AND ts < '{NEXT}'",
        "change since before": f"SELECT max(d) FROM (SELECT kwh - lag(kwh) OVER ({of_meter}) AS d FROM SENSOR)",
        "rank within a time": f"SELECT meter, kwh FROM (SELECT meter, kwh, rank() OVER (PARTITION BY ts ORDER BY kwh DESC) AS n FROM SENSOR "
        f"WHERE ts >= '{DAY}' AND ts < '{NEXT}') WHERE n = 1",
        "moving average of an hour": f"SELECT max(a) FROM (SELECT avg(kwh) OVER ({of_meter} ROWS 3 PRECEDING) AS a FROM SENSOR)",
        "peak of each meter": f"SELECT meter, ts, kwh FROM (SELECT meter, ts, kwh, {ranked.format('meter', 'ts')} FROM SENSOR) WHERE n = 1",
        "three peaks of each day": "SELECT d, meter, kwh FROM (SELECT CAST(ts AS DATE) AS d, meter, kwh, "
        f"{ranked.format('CAST(ts AS DATE)', 'meter, ts')} FROM SENSOR) WHERE n <= 3",
        "against the day before": "SELECT count(*) FROM SENSOR AS a JOIN SENSOR AS b ON a.meter = b.meter AND "
        "a.ts = b.ts + INTERVAL '1 day' WHERE a.kwh > 3 * b.kwh",
        "rolling seven days": "SELECT max(w) FROM (SELECT sum(s) OVER (PARTITION BY meter ORDER BY d ROWS 6 PRECEDING) AS w FROM "
        "(SELECT meter, CAST(ts AS DATE) AS d, sum(kwh) AS s FROM SENSOR GROUP BY 1, 2))",
        "gaps": f"SELECT count(*) FROM (SELECT ts - lag(ts) OVER ({of_meter}) AS d FROM SENSOR) WHERE d > INTERVAL '{STEP}'",
        "two days together": f"SELECT sum(kwh) FROM (SELECT kwh FROM SENSOR WHERE ts >= '{DAY}' AND ts < '{NEXT}' UNION ALL "
        "SELECT kwh FROM SENSOR WHERE ts >= '2017-07-25' AND ts < '2017-07-26')",
        "days above the average": "WITH days AS (SELECT CAST(ts AS DATE) AS d, sum(kwh) AS s FROM SENSOR GROUP BY 1) "
        "SELECT d, s FROM days WHERE s > (SELECT avg(s) FROM days)",
    }
