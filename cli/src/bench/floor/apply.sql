-- First of a batch's three transactions: the resources come to be. Inserts a head, a queue row and an event each.
-- $1 ids, $2 names, $3 states, $4 payloads, $5 metadata for all. Locks only the rows it inserts; returns nothing.
WITH input AS (
    SELECT * FROM unnest($1::uuid[], $2::text[], $3::text[], $4::text[]) AS i (id, name, state, payload)
), heads AS (
    INSERT INTO bench_floor.head
        (id, kind, name, parent, sequence, generation, synced_gen, epoch, phase, state)
    SELECT id, 'bench-leaf', name, NULL, 1, 1, 0, 0, 'Reconciling', state::jsonb FROM input
), queued AS (
    INSERT INTO bench_floor.queue (kind, kind_version, priority, due_at, id)
    SELECT 'bench-leaf', 1, 0, now(), id FROM input
)
INSERT INTO bench_floor.events
    (aggregate_type, aggregate_id, sequence, event_type, event_version, payload, metadata)
SELECT 'resource', id, 1, 'Created', '1', payload::json, $5::json FROM input;
