-- A page of the whole list, in (kind, name, id) order, by resource_list_by_name.
-- Every page query takes the same parameters and has the same shape: the index's equality first, then the
-- range $1..$3 exclusive to $4..$5 exclusive over (kind, name[, id]), then what only filters.
-- $1 kind, $2 name, $3 id after which to start; $4 kind, $5 name before which to end; $6 labels to contain;
-- $7 phases; $8 owner; $9 root; $10 name at least; $11 name below; $12 limit. $6 to $11: null = any.
-- A phase is looked up by a scalar subquery, row by row along the index: it cannot become a join that reads all.
-- Returns id, kind, name, depth, path. Locks nothing.
SELECT id, kind, name, depth, path
FROM projections.resource_list AS row
WHERE (kind, name, id) > ($1, $2, $3)
  AND (kind, name) < ($4, $5)
  AND ($6::jsonb IS NULL OR labels @> $6)
  AND ($7::text[] IS NULL OR (
      SELECT phase FROM projections.resource_phase AS now WHERE now.id = row.id) = ANY ($7))
  AND ($8::uuid IS NULL OR parent = $8)
  AND ($9::uuid IS NULL OR root = $9)
  AND ($10::text IS NULL OR name >= $10)
  AND ($11::text IS NULL OR name < $11)
ORDER BY kind, name, id
LIMIT $12
