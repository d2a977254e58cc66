-- No locks. Sessions that may hold claims but have not beaten for $1 ms, or have no member row.
SELECT c.session
  FROM converge.claimant c
 WHERE NOT EXISTS (SELECT 1 FROM converge.member m
                    WHERE m.session = c.session AND m.beat_at > clock_timestamp() - $1 * interval '1 millisecond')
