-- A page of one tree: what it owns by resource_list_by_root, cut at the limit, and the root itself by its id.
-- The sort on top sees one row more than the limit. Parameters as in page_by_name.sql.
SELECT id, kind, name, depth, path
FROM (
    (SELECT id, kind, name, depth, path
     FROM projections.resource_list AS row
     WHERE root = $8 AND parent IS NOT NULL
       AND (kind, name, id) > ($1, $2, $3)
       AND ($4::text IS NULL OR kind = $4)
       AND ($5::jsonb IS NULL OR labels @> $5)
       AND ($6::text[] IS NULL OR (
           SELECT phase FROM projections.resource_phase AS now WHERE now.id = row.id) = ANY ($6))
       AND ($7::uuid IS NULL OR parent = $7)
       AND ($9::text IS NULL OR name >= $9)
       AND ($10::text IS NULL OR name < $10)
     ORDER BY kind, name, id
     LIMIT $11)
    UNION ALL
    SELECT id, kind, name, depth, path
    FROM projections.resource_list AS row
    WHERE id = $8 AND parent IS NULL
      AND (kind, name, id) > ($1, $2, $3)
      AND ($4::text IS NULL OR kind = $4)
      AND ($5::jsonb IS NULL OR labels @> $5)
      AND ($6::text[] IS NULL OR (
          SELECT phase FROM projections.resource_phase AS now WHERE now.id = row.id) = ANY ($6))
      AND ($7::uuid IS NULL OR parent = $7)
      AND ($9::text IS NULL OR name >= $9)
      AND ($10::text IS NULL OR name < $10)
) AS tree
ORDER BY kind, name, id
LIMIT $11
