-- Events of resources between two positions, by the beginning of their names. Locks nothing; one row a kind of root or of
-- child, and beginning.
SELECT head.kind = $3 AS root, left(head.name, $4) AS beginning, count(*) AS events
FROM converge.events JOIN converge.head ON head.id = events.aggregate_id
WHERE events.position > $1 AND events.position <= $2 AND head.aggregate_type = 'resource'
GROUP BY 1, 2;
