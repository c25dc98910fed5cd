-- What Grafana asks of a data source: its version, tables, columns, a chart with the macros for time.
SELECT current_setting('server_version_num')::int/100 AS version;
-- expects: T
SELECT quote_ident(table_name) AS "table" FROM information_schema.tables
WHERE quote_ident(table_schema) NOT IN ('information_schema', 'pg_catalog', '_timescaledb_cache', '_timescaledb_catalog')
  AND table_type = 'BASE TABLE'
  AND quote_ident(table_schema) IN (
    SELECT CASE WHEN trim(s[i]) = '"$user"' THEN user ELSE trim(s[i]) END
    FROM generate_series(array_lower(string_to_array(current_setting('search_path'), ','), 1),
                         array_upper(string_to_array(current_setting('search_path'), ','), 1)) AS i,
         string_to_array(current_setting('search_path'), ',') s)
ORDER BY 1;
-- expects: price|numeric
SELECT quote_ident(column_name) AS "column", data_type AS "type" FROM information_schema.columns
WHERE CASE WHEN array_length(parse_ident('"T"'), 1) = 2
  THEN quote_ident(table_schema) = (parse_ident('"T"'))[1] AND quote_ident(table_name) = (parse_ident('"T"'))[2]
  ELSE table_name = 'T' AND table_schema = current_schema() END;
SELECT extversion FROM pg_extension WHERE extname = 'timescaledb';
SELECT data_type FROM information_schema.columns WHERE table_name = 'T' AND column_name = 'ts';
-- expects: 1709251200
SELECT floor(extract(epoch from ts)/3600)*3600 AS "time", avg(price) AS "price" FROM T
WHERE ts BETWEEN '2024-03-01T00:00:00Z' AND '2024-03-04T00:00:00Z' GROUP BY 1 ORDER BY 1;
SELECT ts AS "time", ok::text AS metric, ratio AS value FROM "T"
WHERE ts >= '2024-03-01T00:00:00Z' AND ts <= '2024-03-02T00:00:00Z' ORDER BY 1 LIMIT 100;
