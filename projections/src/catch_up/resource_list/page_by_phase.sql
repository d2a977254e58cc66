-- A page of the resources in some phases: one index range per phase, by resource_phase_by_phase, each cut
-- at the limit, then merged. The sort on top sees at most seven times the limit, whatever the table holds.
-- Parameters as in page_by_name.sql; labels, owner and root are looked up in the list, row by row, by a
-- scalar subquery, which cannot become a table of all that match.
SELECT id, kind, name, 0 AS depth, '' AS path
FROM unnest($6::text[]) AS wanted (phase)
CROSS JOIN LATERAL (
    SELECT now.id, now.kind, now.name
    FROM projections.resource_phase AS now
    WHERE now.phase = wanted.phase
      AND (now.kind, now.name, now.id) > ($1, $2, $3)
      AND ($4::text IS NULL OR now.kind = $4)
      AND ($9::text IS NULL OR now.name >= $9)
      AND ($10::text IS NULL OR now.name < $10)
      AND (($5::jsonb IS NULL AND $7::uuid IS NULL AND $8::uuid IS NULL) OR (
          SELECT true FROM projections.resource_list AS row
          WHERE row.id = now.id
            AND ($5::jsonb IS NULL OR row.labels @> $5)
            AND ($7::uuid IS NULL OR row.parent = $7)
            AND ($8::uuid IS NULL OR row.root = $8)))
    ORDER BY now.kind, now.name, now.id
    LIMIT $11
) AS page
ORDER BY kind, name, id
LIMIT $11
