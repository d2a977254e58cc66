-- Remembers resources that came and went within one batch. One array per column. Inserts only.
INSERT INTO projections.resource_gone (id, kind, name, ancestors, created_position)
SELECT id, kind, name, ancestors::uuid[], created_position
FROM unnest($1::uuid[], $2::text[], $3::text[], $4::text[], $5::bigint[])
     AS new (id, kind, name, ancestors, created_position)
