-- A page of a tree or of a branch of it, depth-first, by resource_list_by_path.
-- $1 root, $2..$4 path, depth, id after which to start, $5 path at which the branch ends,
-- $6 null, or the branch's own id when its path is cut, so that neighbours share the range; $7 limit.
-- Returns as in page_by_name.sql. Locks nothing.
SELECT id, depth, path, updated_position, state::text
FROM projections.resource_list
WHERE root = $1
  AND (path, depth, id) > ($2, $3, $4)
  AND path < $5
  AND ($6::uuid IS NULL OR id = $6 OR ancestors @> ARRAY[$6])
ORDER BY path, depth, id
LIMIT $7
