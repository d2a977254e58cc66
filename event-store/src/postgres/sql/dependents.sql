-- No locks. Dependents of upstream $1 after id $2, at most $3, by id.
SELECT dependent AS id FROM converge.edge WHERE upstream = $1 AND dependent > $2 ORDER BY dependent LIMIT $3
