-- Events between two positions of resources whose names begin in one of some ways. Locks nothing; one row. Reads much of the
-- log: only while no clock is running.
SELECT count(*)
FROM converge.events JOIN converge.head ON head.id = events.aggregate_id
WHERE events.position > $1 AND events.position <= $2 AND head.aggregate_type = 'resource'
  AND EXISTS (SELECT FROM unnest($3::text[]) AS begins WHERE starts_with(head.name, begins));
