-- A page of the resources in some phases: one index range per phase, by resource_phase_by_phase, each cut
-- at the limit, then merged. The sort on top sees at most seven times the limit, whatever the table holds.
-- Parameters as in page_by_name.sql; labels, owner and root are looked up in the list, row by row.
SELECT id, kind, name, 0 AS depth, '' AS path
FROM unnest($7::text[]) AS wanted (phase)
CROSS JOIN LATERAL (
    SELECT now.id, now.kind, now.name
    FROM projections.resource_phase AS now
    WHERE now.phase = wanted.phase
      AND (now.kind, now.name, now.id) > ($1, $2, $3)
      AND (now.kind, now.name) < ($4, $5)
      AND ($10::text IS NULL OR now.name >= $10)
      AND ($11::text IS NULL OR now.name < $11)
      AND (($6::jsonb IS NULL AND $8::uuid IS NULL AND $9::uuid IS NULL) OR EXISTS (
          SELECT FROM projections.resource_list AS row
          WHERE row.id = now.id
            AND ($6::jsonb IS NULL OR row.labels @> $6)
            AND ($8::uuid IS NULL OR row.parent = $8)
            AND ($9::uuid IS NULL OR row.root = $9)))
    ORDER BY now.kind, now.name, now.id
    LIMIT $12
) AS page
ORDER BY kind, name, id
LIMIT $12
