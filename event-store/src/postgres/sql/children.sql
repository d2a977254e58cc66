-- No locks. Live children of $1 after id $2, at most $3, by id.
SELECT id FROM converge.head WHERE parent = $1 AND id > $2 ORDER BY id LIMIT $3
