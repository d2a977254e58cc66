-- Locks the staged rows of (root $1, claim $2) and deletes them.
DELETE FROM converge.staging WHERE root = $1 AND claim_id = $2
