-- No locks. The heads among ids $1 that exist.
SELECT id, aggregate_type, sequence, state FROM converge.head WHERE id = ANY ($1)
