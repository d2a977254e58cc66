-- No locks. (upstream, dependent) pairs of the upstreams $1, at most $2 in all, by one index walk per upstream.
SELECT u.id AS upstream, e.dependent AS dependent
FROM unnest($1::uuid[]) AS u(id)
CROSS JOIN LATERAL (SELECT dependent FROM converge.edge WHERE upstream = u.id ORDER BY dependent LIMIT $2) e
LIMIT $2
