-- A week of flights out of New York: hourly departures by airport, and how late each carrier runs.
--
--   thalweg run sample/demo.sql
--
-- Both queries read the same file once. The first gives each window's result when the window is
-- complete; the second keeps its answer up to date, and prints how it changes, as Debezium does.

-- An epoch ends after 1000 rows, so that this short file has several. Totals are kept for the whole week,
-- also of carriers that do not fly every day.
SET pipeline.epoch_max_rows = 1000;
SET updating_ttl = 'infinite';

CREATE TABLE flights (
  ts        TIMESTAMP WITH TIME ZONE,   -- scheduled departure
  carrier   TEXT,
  flight    INT,
  origin    TEXT,
  dest      TEXT,
  dep_delay INT,                        -- minutes; null: the flight was cancelled
  distance  INT,
  -- Flights are recorded as they leave, and the latest of this week left 14 hours behind schedule;
  -- cancelled ones are recorded at the end of the day. With this much patience, no row is late.
  WATERMARK FOR ts AS ts - INTERVAL '20 hours'
) WITH (
  connector = 'single_file',
  path      = 'sample/flights.ndjson',
  format    = 'json'
);

-- Append-only: one row per hour and airport.
SELECT origin, window_start AS hour, COUNT(*) AS departures, COUNT(*) FILTER (WHERE dep_delay IS NULL) AS cancelled
FROM TUMBLE(TABLE flights, DESCRIPTOR(ts), INTERVAL '1 hour')
GROUP BY window_start, window_end, origin;

-- Updating: after each epoch, one change per carrier whose total is another.
SELECT carrier, SUM(dep_delay) AS total_delay, COUNT(*) AS flights
FROM flights
GROUP BY carrier;
