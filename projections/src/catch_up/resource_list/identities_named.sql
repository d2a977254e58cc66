-- The bearers of a name, newest first, by resource_list_by_name and resource_gone_by_name. $1 kind, $2 name,
-- $3 limit. Locks nothing. The live ones are one or two.
SELECT id, kind, name, ancestors, created_position
FROM projections.resource_list
WHERE kind = $1 AND name = $2
UNION ALL
(SELECT id, kind, name, ancestors, created_position
 FROM projections.resource_gone
 WHERE kind = $1 AND name = $2
 ORDER BY created_position DESC
 LIMIT $3)
ORDER BY created_position DESC
LIMIT $3
