-- One row per station: how far the balloons of the day rose, and the extremes on the way.
SELECT
  station,
  COUNT(*) AS levels,
  MAX(altitude) AS top_altitude,
  MIN(pressure) AS top_pressure,
  MIN(temperature) AS lowest_temperature,
  MAX(wind_speed) AS highest_wind_speed
FROM BALLOON_EVENTS
GROUP BY station
ORDER BY station
