-- A page of one tree: what it owns by resource_list_by_root, cut at the limit, and the root itself by its id.
-- The sort on top sees one row more than the limit. Parameters as in page_by_name.sql.
SELECT id, kind, name, depth, path
FROM (
    (SELECT id, kind, name, depth, path, labels, parent
     FROM projections.resource_list AS row
     WHERE root = $9 AND parent IS NOT NULL
       AND (kind, name, id) > ($1, $2, $3)
       AND (kind, name) < ($4, $5)
       AND ($6::jsonb IS NULL OR labels @> $6)
       AND ($7::text[] IS NULL OR (
      SELECT phase FROM projections.resource_phase AS now WHERE now.id = row.id) = ANY ($7))
       AND ($8::uuid IS NULL OR parent = $8)
       AND ($10::text IS NULL OR name >= $10)
       AND ($11::text IS NULL OR name < $11)
     ORDER BY kind, name, id
     LIMIT $12)
    UNION ALL
    SELECT id, kind, name, depth, path, labels, parent
    FROM projections.resource_list AS row
    WHERE id = $9 AND parent IS NULL
      AND (kind, name, id) > ($1, $2, $3)
      AND (kind, name) < ($4, $5)
      AND ($6::jsonb IS NULL OR labels @> $6)
      AND ($7::text[] IS NULL OR (
      SELECT phase FROM projections.resource_phase AS now WHERE now.id = row.id) = ANY ($7))
      AND ($8::uuid IS NULL OR parent = $8)
      AND ($10::text IS NULL OR name >= $10)
      AND ($11::text IS NULL OR name < $11)
) AS tree
ORDER BY kind, name, id
LIMIT $12
