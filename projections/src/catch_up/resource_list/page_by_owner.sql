-- A page of one owner's children, by resource_list_by_parent. Parameters as in page_by_name.sql.
SELECT id, kind, name, depth, path
FROM projections.resource_list AS row
WHERE parent = $8
  AND (kind, name, id) > ($1, $2, $3)
  AND (kind, name) < ($4, $5)
  AND ($6::jsonb IS NULL OR labels @> $6)
  AND ($7::text[] IS NULL OR (
      SELECT phase FROM projections.resource_phase AS now WHERE now.id = row.id) = ANY ($7))
  AND ($9::uuid IS NULL OR root = $9)
  AND ($10::text IS NULL OR name >= $10)
  AND ($11::text IS NULL OR name < $11)
ORDER BY kind, name, id
LIMIT $12
