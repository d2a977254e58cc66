-- No locks. Staged items of (root $1, claim $2) after ordinal $3, at most $4, in order.
SELECT ordinal, part, payload
  FROM converge.staging
 WHERE root = $1 AND claim_id = $2 AND ordinal > $3
 ORDER BY ordinal
 LIMIT $4
