-- No locks. The chain hash of the batch that ends at position $1, if one does.
SELECT chain
  FROM (SELECT first_position, count, chain
          FROM converge.append_batch
         WHERE first_position <= $1
         ORDER BY first_position DESC
         LIMIT 1) b
 WHERE first_position + count - 1 = $1
