-- Third of a batch's three transactions: the work is done. Updates a head with its new state and inserts an event
-- each. $1 ids, $2 states, $3 payloads, $4 metadata for all. Locks the rows it changes; returns nothing.
WITH input AS (
    SELECT * FROM unnest($1::uuid[], $2::text[], $3::text[]) AS i (id, state, payload)
), heads AS (
    UPDATE bench_floor.head AS h
    SET sequence = 3, synced_gen = 1, phase = 'Ready', state = input.state::jsonb
    FROM input WHERE h.id = input.id
)
INSERT INTO bench_floor.events
    (aggregate_type, aggregate_id, sequence, event_type, event_version, payload, metadata)
SELECT 'resource', id, 3, 'Worked', '1', payload::json, $4::json FROM input;
