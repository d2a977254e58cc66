-- Listed resources of one name: normally one; while an old one is still going away, two. $1 kind, $2 name.
-- Newest first. Returns as in page_by_name.sql, and root. Locks nothing. By resource_list_by_name.
SELECT id, kind, name, depth, path, root
FROM projections.resource_list
WHERE kind = $1 AND name = $2
ORDER BY created_position DESC
LIMIT 2
