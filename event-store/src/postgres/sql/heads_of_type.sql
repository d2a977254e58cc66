-- No locks. All heads of aggregate type $1, which is not `resource` (the partial index needs to see that).
SELECT id, aggregate_type, sequence, state
  FROM converge.head
 WHERE aggregate_type = $1 AND aggregate_type <> 'resource'
