-- No locks. Sessions that hold claims but have not beaten for $1 ms, or have no member row. Skips through the claim
-- index from one (kind, version, session) to the next.
WITH RECURSIVE held AS (
    (SELECT kind, kind_version, session FROM converge.claim ORDER BY kind, kind_version, session LIMIT 1)
    UNION ALL
    SELECT n.kind, n.kind_version, n.session
      FROM held h
     CROSS JOIN LATERAL (
        SELECT c.kind, c.kind_version, c.session FROM converge.claim c
         WHERE (c.kind, c.kind_version, c.session) > (h.kind, h.kind_version, h.session)
         ORDER BY c.kind, c.kind_version, c.session LIMIT 1) n
)
SELECT DISTINCT h.session
  FROM held h
 WHERE NOT EXISTS (SELECT 1 FROM converge.member m
                    WHERE m.session = h.session AND m.beat_at > clock_timestamp() - $1 * interval '1 millisecond')
