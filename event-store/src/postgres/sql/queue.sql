-- No locks. Due work of kind ($1, $2) after the cursor (priority $3, due_at $4, id $5), at most $6, in order. One index
-- range per priority, so that work which is not due yet is not walked through.
SELECT q.priority, q.due_at, q.id
  FROM generate_series($3::int, 3) p
 CROSS JOIN LATERAL (
    SELECT priority, due_at, id
      FROM converge.queue
     WHERE kind = $1 AND kind_version = $2 AND priority = p::smallint
       AND due_at <= floor(extract(epoch FROM now()) * 1000)::bigint
       AND (due_at, id) > (CASE WHEN p = $3 THEN $4 ELSE -9223372036854775808 END,
                           CASE WHEN p = $3 THEN $5 ELSE '00000000-0000-0000-0000-000000000000'::uuid END)
     ORDER BY due_at, id
     LIMIT $6
 ) q
 ORDER BY q.priority, q.due_at, q.id
 LIMIT $6
