-- Lists new resources. One array per column; ancestors travel as array literals, since Postgres has no ragged
-- arrays. Inserts only.
WITH new AS MATERIALIZED (
    SELECT *
    FROM unnest($1::uuid[], $2::text[], $3::text[], $4::uuid[], $5::uuid[], $6::text[], $7::text[], $8::text[],
                $9::bigint[], $10::text[], $11::text[])
         AS new (id, kind, name, parent, root, ancestors, path, labels, created_position, phase, basis)
), listed AS (
    INSERT INTO projections.resource_list (
        id, kind, name, parent, root, depth, ancestors, path, labels, created_position)
    SELECT id, kind, name, parent, root, cardinality(ancestors::uuid[]), ancestors::uuid[], path, labels::jsonb,
           created_position
    FROM new
)
INSERT INTO projections.resource_phase (id, phase, kind, name, root, basis)
SELECT id, phase, kind, name, CASE WHEN parent IS NOT NULL THEN root END, basis::json
FROM new
