-- No locks. Staged items of (root $1, claim $2) at the ordinals $3, in order.
SELECT ordinal, part, payload
  FROM converge.staging
 WHERE root = $1 AND claim_id = $2 AND ordinal = ANY ($3)
 ORDER BY ordinal
