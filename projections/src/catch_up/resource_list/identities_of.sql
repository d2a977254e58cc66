-- Identities by id. $1 ids. Locks nothing.
SELECT id, kind, name, ancestors, created_position FROM projections.resource_identity WHERE id = ANY ($1)
