-- The rows a batch folds over. $1 ids. Returns state (text), path and updated_position of those that exist.
-- Locks nothing: the checkpoint row, locked before this, admits one writer at a time.
SELECT state::text, path, updated_position
FROM projections.resource_list
WHERE id = ANY ($1)
