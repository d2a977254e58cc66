-- Second of a batch's three transactions: the resources are claimed. Updates a head, deletes its queue row and inserts
-- an event each. $1 ids, $2 payloads, $3 metadata for all. Locks the rows it changes; returns nothing.
WITH input AS (
    SELECT * FROM unnest($1::uuid[], $2::text[]) AS i (id, payload)
), heads AS (
    UPDATE bench_floor.head AS h SET sequence = 2, epoch = h.epoch + 1 FROM input WHERE h.id = input.id
), taken AS (
    DELETE FROM bench_floor.queue AS q
    USING input
    WHERE q.id = input.id AND q.kind = 'bench-leaf' AND q.kind_version = 1 AND q.priority = 0
)
INSERT INTO bench_floor.events
    (aggregate_type, aggregate_id, sequence, event_type, event_version, payload, metadata)
SELECT 'resource', id, 2, 'Claimed', '1', payload::json, $3::json FROM input;
