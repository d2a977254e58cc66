-- No locks. One aggregate's events after sequence $2 in order, at most $3, within positions $4 to $5: the bounds
-- keep partitions outside them from being opened.
SELECT e.position, e.aggregate_type, e.aggregate_id, e.sequence, e.event_type, e.event_version,
       e.payload::text AS payload, e.metadata::text AS metadata,
       (SELECT floor(extract(epoch FROM b.committed_at) * 1000)::bigint FROM converge.append_batch b
         WHERE b.first_position <= e.position ORDER BY b.first_position DESC LIMIT 1) AS committed_at
  FROM converge.events e
 WHERE e.aggregate_id = $1 AND e.sequence > $2 AND e.position BETWEEN $4 AND $5
 ORDER BY e.sequence
 LIMIT $3
