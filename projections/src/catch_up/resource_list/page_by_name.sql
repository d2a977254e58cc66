-- A page of the whole list, in (kind, name, id) order, by resource_list_by_name.
-- Every page query takes the same parameters and has the same shape: the index's equality first, then the range of
-- the page, then what only filters. $1 kind, $2 name, $3 id after which to start; $4 kind; $5 labels to contain; $6 phases;
-- $7 owner; $8 root; $9 name at least; $10 name below; $11 limit. $4 to $10: null = any.
-- A kind is an equality and names are bounded by columns of their own: a comparison of rows says where a scan begins,
-- but it would go on to the end of the kind, whatever row it is told to end at.
-- A phase is looked up by a scalar subquery, row by row along the index: it cannot become a join that reads all.
-- Returns id, kind, name, depth, path. Locks nothing.
SELECT id, kind, name, depth, path
FROM projections.resource_list AS row
WHERE (kind, name, id) > ($1, $2, $3)
  AND ($4::text IS NULL OR kind = $4)
  AND ($5::jsonb IS NULL OR labels @> $5)
  AND ($6::text[] IS NULL OR (
      SELECT phase FROM projections.resource_phase AS now WHERE now.id = row.id) = ANY ($6))
  AND ($7::uuid IS NULL OR parent = $7)
  AND ($8::uuid IS NULL OR root = $8)
  AND ($9::text IS NULL OR name >= $9)
  AND ($10::text IS NULL OR name < $10)
ORDER BY kind, name, id
LIMIT $11
