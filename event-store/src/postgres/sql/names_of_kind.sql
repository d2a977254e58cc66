-- No locks. Names of kind $1 after name $2 with their bearers, at most $3, in order.
SELECT name, id FROM converge.names WHERE kind = $1 AND name > $2 ORDER BY name LIMIT $3
