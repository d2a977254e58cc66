-- Stores folded rows: one array per column. Ancestors travel as array literals, since Postgres has no
-- ragged arrays. Locks the rows it writes until commit.
-- What never changes about a resource (kind, name, place in its tree, birth) is not written again.
INSERT INTO projections.resource_list AS row (
    id, kind, kind_version, name, labels, phase, parent, root, depth, ancestors, path,
    created_at, updated_position, state)
SELECT id, kind, kind_version, name, labels::jsonb, phase, parent, root, depth, ancestors::uuid[], path,
       created_at, updated_position, state::json
FROM unnest($1::uuid[], $2::text[], $3::smallint[], $4::text[], $5::text[], $6::text[], $7::uuid[], $8::uuid[],
            $9::int[], $10::text[], $11::text[], $12::timestamptz[], $13::bigint[], $14::text[])
     AS new (id, kind, kind_version, name, labels, phase, parent, root, depth, ancestors, path,
             created_at, updated_position, state)
ON CONFLICT (id) DO UPDATE
SET kind_version = excluded.kind_version,
    labels = excluded.labels,
    phase = excluded.phase,
    updated_position = excluded.updated_position,
    state = excluded.state
