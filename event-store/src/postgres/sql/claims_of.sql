-- No locks. Live claims made under session $1, by id, at most $2. Skips from one (kind, version) to the next: a few
-- probes per kind in flight instead of an index by session that every claim would pay for.
WITH RECURSIVE kinds AS (
    (SELECT kind, kind_version FROM converge.claim ORDER BY kind, kind_version LIMIT 1)
    UNION ALL
    SELECT n.kind, n.kind_version
      FROM kinds k
     CROSS JOIN LATERAL (
        SELECT c.kind, c.kind_version FROM converge.claim c
         WHERE (c.kind, c.kind_version) > (k.kind, k.kind_version)
         ORDER BY c.kind, c.kind_version LIMIT 1) n
)
SELECT c.id
  FROM kinds k
  JOIN converge.claim c ON c.kind = k.kind AND c.kind_version = k.kind_version AND c.session = $1
 ORDER BY c.id
 LIMIT $2
