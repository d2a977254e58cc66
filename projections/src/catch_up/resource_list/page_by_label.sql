-- A page of the resources that carry some labels, by resource_list_by_label (or, where the planner knows
-- that the labels are common, along resource_list_by_name). Parameters as in page_by_name.sql.
-- An inverted index has no order, so this one sorts what the labels leave.
SELECT id, kind, name, depth, path
FROM projections.resource_list AS row
WHERE labels @> $5::jsonb AND labels IS NOT NULL
  AND (kind, name, id) > ($1, $2, $3)
  AND ($4::text IS NULL OR kind = $4)
  AND ($7::uuid IS NULL OR parent = $7)
  AND ($8::uuid IS NULL OR root = $8)
  AND ($9::text IS NULL OR name >= $9)
  AND ($10::text IS NULL OR name < $10)
  AND ($6::text[] IS NULL OR EXISTS (
      SELECT FROM projections.resource_phase AS now WHERE now.id = row.id AND now.phase = ANY ($6)))
ORDER BY kind, name, id
LIMIT $11
