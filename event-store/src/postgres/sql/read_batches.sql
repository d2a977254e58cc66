-- No locks. The batches that hold positions $1 to $2, in order. Batch rows become visible with their events.
SELECT first_position, floor(extract(epoch FROM committed_at) * 1000)::bigint AS committed_at
  FROM converge.append_batch
 WHERE first_position <= $2
   AND first_position >= (SELECT max(first_position) FROM converge.append_batch WHERE first_position <= $1)
 ORDER BY first_position
