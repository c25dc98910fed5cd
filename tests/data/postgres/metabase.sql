-- What Metabase asks when it connects and reads the tables of a database.
SELECT 1;
SHOW timezone;
-- expects: records
SELECT nspname FROM pg_namespace WHERE nspname !~ '^pg_' AND nspname <> 'information_schema';
-- expects: records|T|t
WITH table_privileges AS (
  SELECT NULL AS role, t.schemaname AS schema, t.objectname AS "table",
    pg_catalog.has_any_column_privilege(current_user, '"' || replace(t.schemaname, '"', '""') || '"' || '.' || '"' ||
      replace(t.objectname, '"', '""') || '"', 'select') AS "select"
  FROM (SELECT schemaname, tablename AS objectname FROM pg_catalog.pg_tables
        UNION SELECT schemaname, viewname AS objectname FROM pg_catalog.pg_views
        UNION SELECT schemaname, matviewname AS objectname FROM pg_catalog.pg_matviews) t
  WHERE t.schemaname !~ '^pg_' AND t.schemaname <> 'information_schema'
    AND pg_catalog.has_schema_privilege(current_user, t.schemaname, 'usage'))
SELECT t.schema, t."table", t."select" FROM table_privileges t ORDER BY 1, 2;
-- expects: T|records|TABLE|
SELECT c.relname AS name, n.nspname AS schema,
  CASE c.relkind WHEN 'r' THEN 'TABLE' WHEN 'p' THEN 'PARTITIONED TABLE' WHEN 'v' THEN 'VIEW' WHEN 'f' THEN 'FOREIGN TABLE'
    WHEN 'm' THEN 'MATERIALIZED VIEW' ELSE NULL END AS type,
  d.description AS description
FROM pg_catalog.pg_class AS c
INNER JOIN pg_catalog.pg_namespace AS n ON c.relnamespace = n.oid
LEFT JOIN pg_catalog.pg_description AS d ON c.oid = d.objoid AND d.objsubid = 0 AND d.classoid = 'pg_class'::regclass
WHERE c.relnamespace = n.oid AND n.nspname !~ '^pg_' AND n.nspname <> 'information_schema'
  AND c.relkind IN ('r', 'p', 'v', 'f', 'm') AND n.nspname IN ('records') ORDER BY type ASC, schema ASC, name ASC;
-- expects: price|numeric|4|records|T|f||f|f|f
SELECT c.column_name AS name, c.udt_name AS "database-type", c.ordinal_position - 1 AS "database-position",
  c.table_schema AS "table-schema", c.table_name AS "table-name", pk.column_name IS NOT NULL AS "pk?",
  COL_DESCRIPTION(CAST(CAST(FORMAT('%I.%I', CAST(c.table_schema AS text), CAST(c.table_name AS text)) AS regclass) AS oid),
    c.ordinal_position) AS "field-comment",
  (column_default IS NULL OR LOWER(column_default) = 'null') AND is_nullable = 'NO' AND is_generated <> 'NEVER' AS "required",
  column_default IS NOT NULL AS "auto", is_identity <> 'NO' AS "identity"
FROM information_schema.columns AS c
LEFT JOIN (SELECT tc.table_schema, tc.table_name, kc.column_name FROM information_schema.table_constraints AS tc
           INNER JOIN information_schema.key_column_usage AS kc ON tc.constraint_name = kc.constraint_name
             AND tc.table_schema = kc.table_schema AND tc.table_name = kc.table_name
           WHERE tc.constraint_type = 'PRIMARY KEY') AS pk
  ON c.table_schema = pk.table_schema AND c.table_name = pk.table_name AND c.column_name = pk.column_name
WHERE c.table_schema !~ '^information_schema|catalog_history|pg_' AND c.table_schema IN ('records')
ORDER BY "table-schema" ASC, "table-name" ASC, "database-position" ASC;
SELECT nspname, typname FROM pg_type t JOIN pg_namespace n ON n.oid = t.typnamespace
WHERE t.oid IN (SELECT DISTINCT enumtypid FROM pg_enum e);
SELECT TRUE AS "_" FROM "records"."T" WHERE 1 <> 1 LIMIT 0;
-- expects: 2024-03-01
SELECT DATE_TRUNC('day', "T"."ts") AS "ts", COUNT(*) AS "count" FROM "records"."T" AS "T"
GROUP BY DATE_TRUNC('day', "T"."ts") ORDER BY 1 ASC;
