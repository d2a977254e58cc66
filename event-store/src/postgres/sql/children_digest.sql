-- No locks. Count and digest of the counted children of $1. They come by id from the index, so the digest does
-- not depend on the order of writes.
SELECT count(*) AS count,
       encode(sha256(COALESCE(string_agg(uuid_send(id) || int8send(outward), ''::bytea ORDER BY id), ''::bytea)), 'hex') AS digest
  FROM converge.head
 WHERE parent = $1 AND standing IS DISTINCT FROM 0
