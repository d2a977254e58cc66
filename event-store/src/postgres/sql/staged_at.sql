-- No locks. Staged items of (root $1, claim $2) at the ordinals $3, in order: one probe of the key per ordinal. (As a filter
-- `ordinal = ANY ($3)` the planner, which knows nothing of a fresh staging table, reads the whole claim.)
SELECT s.ordinal, s.part, s.payload
  FROM unnest($3::bigint[]) w(ordinal)
 CROSS JOIN LATERAL (
       SELECT x.ordinal, x.part, x.payload
         FROM converge.staging x
        WHERE x.root = $1 AND x.claim_id = $2 AND x.ordinal = w.ordinal
        LIMIT 1) s
 ORDER BY s.ordinal
