-- A page of names in a range, of whatever kind: one index range per kind that has a resource, by resource_list_by_name, each
-- cut at the limit, then merged. Parameters as in page_by_name.sql; for $4, $7 and $8 null, $6 null.
SELECT id, kind, name, depth, path
FROM (SELECT DISTINCT kind FROM projections.phase_count WHERE kind >= $1) AS listed
CROSS JOIN LATERAL (
    SELECT row.id, row.name, row.depth, row.path
    FROM projections.resource_list AS row
    WHERE row.kind = listed.kind
      AND (row.kind, row.name, row.id) > ($1, $2, $3)
      AND row.name >= CASE WHEN listed.kind = $1 THEN greatest($2, $9) ELSE $9 END
      AND row.name < $10
      AND ($5::jsonb IS NULL OR row.labels @> $5)
      AND ($4::text IS NULL AND $6::text[] IS NULL AND $7::uuid IS NULL AND $8::uuid IS NULL)
    ORDER BY row.kind, row.name, row.id
    LIMIT $11
) AS page
ORDER BY kind, name, id
LIMIT $11
