"""The two shapes of telemetry: their columns and times, how they are sorted, and the jobs that load them."""

METER_JOB = """name = "meter"
[sources.readings]
files = [{files}]
time = "ts"
[sources.readings.columns]
meter = "uint64"
ts = {{ format = "%Y-%m-%dT%H:%M:%SZ" }}
kwh = "float64"
[tables.SENSOR]
row_key = "{{meter:010}}#{{ts:%Y%m%d}}"
[tables.SENSOR.families.METER]
gc = "maxversions=1"
columns = [
  {{ qualifier = "ID", value = "{{meter}}" }},
  {{ qualifier = "{{ts:%H%M}}", value = "{{kwh}}" }},
]
"""

METRIC_JOB = """name = "metric"
[sources.samples]
files = [{files}]
time = "ts"
[sources.samples.columns]
host = "text"
ts = "timestamp"
{columns}
[tables.METRIC]
row_key = "{{host}}#{{ts:ms}}"
[tables.METRIC.families.METRIC]
gc = "maxversions=1"
columns = [
  {{ qualifier = "HOSTNAME", value = "{{host}}" }},
  {{ each = "*", except = ["host", "ts"], qualifier = "{{column}}", value = "{{value}}" }},
]
"""


class Shape:
    """`columns` are (name, type) of the numeric columns, after `entity` and `ts`, which has whole seconds or `millis`."""

    def __init__(self, name, table, entity, millis, columns, item, text_key, job):
        self.name, self.table, self.entity, self.millis, self.columns = name, table, entity, millis, columns
        # The counted item: a reading, or a cell of a row.
        self.item = item
        # The row key in DuckDB's SQL.
        self.text_key = text_key
        self.job = job

    def items(self, rows):
        return rows * len(self.columns)

    def job_file(self, files):
        columns = "\n".join(f'{name} = "{kind}"' for name, kind in self.columns)
        return self.job.format(files=f'"{files}"', columns=columns)


def named(kind, count, type_name):
    return [(f"{kind}_{at:02}", type_name) for at in range(count)]


METER = Shape(
    "meter",
    "SENSOR",
    ("meter", "uint64"),
    False,
    [("kwh", "float64")],
    "reading",
    "lpad(meter::VARCHAR, 10, '0') || '#' || strftime(ts, '%Y%m%d')",
    METER_JOB,
)
METRIC = Shape(
    "metric",
    "METRIC",
    ("host", "text"),
    True,
    named("float", 60, "float64") + named("counter", 30, "uint64") + named("bytes", 10, "uint64"),
    "cell",
    "host || '#' || epoch_ms(ts)",
    METRIC_JOB,
)
SHAPES = {shape.name: shape for shape in (METER, METRIC)}
