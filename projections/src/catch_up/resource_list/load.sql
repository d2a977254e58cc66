-- What a batch folds over. $1 ids. Returns those that are listed. Locks nothing: the checkpoint row, locked
-- before this, admits one writer at a time.
SELECT id, phase, kind, name, root, basis::text
FROM projections.resource_phase
WHERE id = ANY ($1)
