-- Listed resources of one name: normally one; while an old one is still going away, two. $1 kind, $2 name.
-- Newest first. Returns as in page_by_name.sql. Locks nothing. By resource_list_by_name.
SELECT id, depth, path, updated_position, state::text
FROM projections.resource_list
WHERE kind = $1 AND name = $2
ORDER BY created_at DESC, id DESC
LIMIT 2
