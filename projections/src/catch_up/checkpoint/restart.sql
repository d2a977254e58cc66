-- Puts a checkpoint back to the start for a build by another version.
-- $1 name, $2 epoch, $3 version. One row: done; none: fenced. Locks the one row until commit.
UPDATE projections.checkpoint
SET position = 0, version = $3, updated_at = now()
WHERE name = $1 AND epoch = $2
