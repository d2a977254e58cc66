-- How far the slowest read model is behind the log; null when there is none. Locks nothing; one row.
SELECT (SELECT max(first_position + count - 1) FROM converge.append_batch) - min(position) AS behind
FROM projections.checkpoint;
