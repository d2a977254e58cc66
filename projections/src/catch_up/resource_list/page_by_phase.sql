-- A page of the resources in some phases: one index range per phase, by resource_list_by_phase, each cut
-- at the limit, then merged. The sort on top sees at most seven times the limit, whatever the table holds.
-- Parameters as in page_by_name.sql.
SELECT page.*
FROM unnest($7::text[]) AS wanted (phase)
CROSS JOIN LATERAL (
    SELECT id, depth, path, updated_position, state::text, kind, name
    FROM projections.resource_list
    WHERE phase = wanted.phase
      AND (kind, name, id) > ($1, $2, $3)
      AND (kind, name) < ($4, $5)
      AND ($6::jsonb IS NULL OR labels @> $6)
      AND ($8::uuid IS NULL OR parent = $8)
      AND ($9::uuid IS NULL OR root = $9)
      AND ($10::text IS NULL OR name >= $10)
      AND ($11::text IS NULL OR name < $11)
    ORDER BY kind, name, id
    LIMIT $12
) AS page
ORDER BY page.kind, page.name, page.id
LIMIT $12
