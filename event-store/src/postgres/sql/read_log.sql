-- No locks. Events after position $1 in order, at most $2.
SELECT e.position, e.aggregate_type, e.aggregate_id, e.sequence, e.event_type, e.event_version,
       e.payload::text AS payload, e.metadata::text AS metadata
  FROM converge.events e
 WHERE e.position > $1
 ORDER BY e.position
 LIMIT $2
