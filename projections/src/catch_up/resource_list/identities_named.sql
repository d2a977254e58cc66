-- The bearers of a name, newest first, by resource_identity_by_name. $1 kind, $2 name, $3 limit. Locks nothing.
SELECT id, kind, name, ancestors, created_position
FROM projections.resource_identity
WHERE kind = $1 AND name = $2
ORDER BY created_position DESC
LIMIT $3
