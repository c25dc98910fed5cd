-- One row per meter: the day's energy, its highest reading, and the hour in which that was first reached.
SELECT
  meter,
  CAST(ts AS DATE) AS day,
  SUM(kwh) AS total_kwh,
  MAX(kwh) AS peak_kwh,
  CAST(DATE_PART('hour', FIRST_VALUE(ts ORDER BY kwh DESC, ts)) AS INT) AS peak_hour,
  COUNT(*) AS readings
FROM SENSOR
GROUP BY meter, CAST(ts AS DATE)
ORDER BY meter, day
