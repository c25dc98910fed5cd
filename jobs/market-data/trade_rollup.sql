-- One row per ticker: the day's first, highest, lowest and last price, and the shares traded by its last trade.
SELECT
  exchange,
  symbol,
  FIRST_VALUE(last_sale ORDER BY trade_time) AS open,
  MAX(last_sale) AS high,
  MIN(last_sale) AS low,
  LAST_VALUE(last_sale ORDER BY trade_time) AS close,
  MAX(volume) AS volume,
  COUNT(*) AS trades
FROM TRADE
GROUP BY exchange, symbol
ORDER BY exchange, symbol
