-- One row per machine and hour: how busy it was, its least free memory, and what it read, wrote, received and sent.
SELECT
  host,
  DATE_TRUNC('hour', ts) AS hour,
  COUNT(*) AS samples,
  AVG(1 - "CPU/CPU_IDLE") AS average_busy,
  MAX(1 - "CPU/CPU_IDLE") AS peak_busy,
  MAX("LOAD/1MIN") AS peak_load,
  MIN("MEM/AVAILABLE") AS least_available_kb,
  MAX("IO/BLK_READ") - MIN("IO/BLK_READ") AS blocks_read,
  MAX("IO/BLK_WRTN") - MIN("IO/BLK_WRTN") AS blocks_written,
  MAX("NET/RX_BYTES") - MIN("NET/RX_BYTES") AS bytes_received,
  MAX("NET/TX_BYTES") - MIN("NET/TX_BYTES") AS bytes_sent
FROM METRIC
GROUP BY host, DATE_TRUNC('hour', ts)
ORDER BY host, hour
