-- The log behind a position in numbers. Locks nothing; one row for each event type. Reads all of it: only while no clock
-- is running.
SELECT aggregate_type, event_type, count(*) AS events, count(DISTINCT aggregate_id) AS aggregates
FROM converge.events
WHERE position > $1
GROUP BY aggregate_type, event_type;
