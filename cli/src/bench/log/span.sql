-- Where the log stands, and how long it took from the first to the last append behind a position. Locks nothing; one row.
SELECT coalesce(max(first_position + count - 1), $1)::bigint AS last,
       count(*)::bigint AS batches,
       coalesce(extract(epoch FROM max(committed_at) - min(committed_at)), 0)::float8 AS seconds
FROM converge.append_batch
WHERE first_position > $1;
