-- Adds differences to the phase counts. $1 kinds, $2 phases, $3 differences, each pair once and in order.
-- Locks the rows it changes until commit. The checkpoint row, locked before this, admits one writer at a
-- time, so nobody inserts a pair between the update and the insert.
-- Not ON CONFLICT: that checks the proposed row first, and a negative difference is no valid count.
WITH difference AS (
    SELECT * FROM unnest($1::text[], $2::text[], $3::bigint[]) AS new (kind, phase, count)
), changed AS (
    UPDATE projections.phase_count AS total
    SET count = total.count + difference.count
    FROM difference
    WHERE total.kind = difference.kind AND total.phase = difference.phase
    RETURNING total.kind, total.phase
)
INSERT INTO projections.phase_count (kind, phase, count)
SELECT kind, phase, count
FROM difference
WHERE NOT EXISTS (SELECT FROM changed WHERE changed.kind = difference.kind AND changed.phase = difference.phase)
