-- No locks. Returns the last batch, or nothing for an empty log.
SELECT first_position + count - 1 AS position, chain, floor(extract(epoch FROM committed_at) * 1000)::bigint AS committed_at
  FROM converge.append_batch
 ORDER BY first_position DESC
 LIMIT 1
