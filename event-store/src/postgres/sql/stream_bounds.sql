-- No locks. The positions between which a live aggregate's stream lies; no row without a head.
SELECT c.first_position AS low, b.first_position + b.count - 1 AS high
  FROM converge.head h
  JOIN converge.append_batch c ON c.batch_id = h.created_batch
  JOIN converge.append_batch b ON b.batch_id = h.batch_id
 WHERE h.id = $1
