-- No locks. Timers after instant $1 that are due, about $2 of them by time: ties with the last one are included, so
-- that its instant can serve as the next cursor.
SELECT due_at, id
  FROM converge.timer
 WHERE due_at > $1 AND due_at <= floor(extract(epoch FROM now()) * 1000)::bigint
 ORDER BY due_at
 FETCH FIRST $2 ROWS WITH TIES
