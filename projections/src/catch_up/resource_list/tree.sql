-- A page of a tree or of a branch of it, depth-first, by resource_list_by_path, and the root by its id (its path
-- is empty, so it comes first). $1 root, $2..$4 path, depth, id after which to start, $5 path at which the branch
-- ends, $6 null, or the branch's own id when its path is cut, so that neighbours share the range; $7 limit.
-- Returns as in page_by_name.sql. Locks nothing.
(SELECT id, kind, name, depth, path
 FROM projections.resource_list
 WHERE id = $1 AND parent IS NULL AND (path, depth, id) > ($2, $3, $4))
UNION ALL
(SELECT id, kind, name, depth, path
 FROM projections.resource_list
 WHERE root = $1 AND parent IS NOT NULL
   AND (path, depth, id) > ($2, $3, $4)
   AND path < $5
   AND ($6::uuid IS NULL OR id = $6::uuid OR ancestors @> ARRAY[$6::uuid])
 ORDER BY path, depth, id
 LIMIT $7)
ORDER BY path, depth, id
LIMIT $7
