-- The log in numbers. Locks nothing; returns one row. Reads the whole log: only while no clock is running.
SELECT count(*) AS events,
       coalesce(max(position), 0) AS last,
       count(*) FILTER (WHERE aggregate_type = 'resource' AND event_type = 'Created') AS created,
       count(*) FILTER (WHERE aggregate_type = 'resource' AND event_type = 'Worked') AS worked,
       (SELECT count(*) FROM converge.append_batch) AS batches
FROM converge.events;
