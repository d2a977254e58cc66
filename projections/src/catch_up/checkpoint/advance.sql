-- Moves a checkpoint, if it still is where the caller left it.
-- $1 name, $2 epoch, $3 position before, $4 position after. One row: moved; none: fenced.
-- Locks the one row until commit, so two runners of one projection cannot both pass.
UPDATE projections.checkpoint
SET position = $4, updated_at = now()
WHERE name = $1 AND epoch = $2 AND position = $3
