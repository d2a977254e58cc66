-- A page of one owner's children, by resource_list_by_parent. Parameters as in page_by_name.sql.
SELECT id, kind, name, depth, path
FROM projections.resource_list AS row
WHERE parent = $7
  AND (kind, name, id) > ($1, $2, $3)
  AND ($4::text IS NULL OR kind = $4)
  AND ($5::jsonb IS NULL OR labels @> $5)
  AND ($6::text[] IS NULL OR (
      SELECT phase FROM projections.resource_phase AS now WHERE now.id = row.id) = ANY ($6))
  AND ($8::uuid IS NULL OR root = $8)
  AND ($9::text IS NULL OR name >= $9)
  AND ($10::text IS NULL OR name < $10)
ORDER BY kind, name, id
LIMIT $11
