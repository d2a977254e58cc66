-- No locks. Milliseconds until the first timer after instant $1, not below 0; no row if there is none.
SELECT GREATEST(due_at - floor(extract(epoch FROM now()) * 1000)::bigint, 0) AS ms
  FROM converge.timer
 WHERE due_at > $1
 ORDER BY due_at
 LIMIT 1
