-- No locks. Of each stream of ids $1 the events up to the sequence in $2, at most $4, all before position $3. A live
-- stream is not looked for in partitions before its first batch.
SELECT e.*
  FROM unnest($1::uuid[], $2::bigint[]) WITH ORDINALITY AS s (id, upto, ordinal)
  LEFT JOIN converge.head h ON h.id = s.id
  LEFT JOIN converge.append_batch c ON c.batch_id = h.created_batch
  CROSS JOIN LATERAL (
    SELECT e.position, e.aggregate_type, e.aggregate_id, e.sequence, e.event_type, e.event_version,
           e.payload::text AS payload, e.metadata::text AS metadata,
           (SELECT floor(extract(epoch FROM b.committed_at) * 1000)::bigint FROM converge.append_batch b
             WHERE b.first_position <= e.position ORDER BY b.first_position DESC LIMIT 1) AS committed_at
      FROM converge.events e
     WHERE e.aggregate_id = s.id AND e.sequence <= s.upto
       AND e.position >= coalesce(c.first_position, 0) AND e.position < $3
     ORDER BY e.sequence
     LIMIT $4
  ) e
 ORDER BY s.ordinal, e.sequence
