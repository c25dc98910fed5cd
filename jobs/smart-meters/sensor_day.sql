-- The readings of one day, in the order of the row keys.
SELECT * FROM SENSOR ORDER BY meter, ts
