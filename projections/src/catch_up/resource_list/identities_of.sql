-- Identities by id, alive or gone. $1 ids. Locks nothing.
SELECT id, kind, name, ancestors, created_position FROM projections.resource_list WHERE id = ANY ($1)
UNION ALL
SELECT id, kind, name, ancestors, created_position FROM projections.resource_gone WHERE id = ANY ($1)
