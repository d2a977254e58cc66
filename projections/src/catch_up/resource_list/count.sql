-- Adds differences to the phase counts of the fleet. $1 kinds, $2 phases, $3 differences, each pair once and in
-- order. A count that comes to nothing loses its row.
-- Locks the rows it changes until commit. The checkpoint row, locked before this, admits one writer at a time, so
-- nobody inserts a pair between the look and the insert. All parts see the same snapshot, and each row belongs to
-- one part only. Not ON CONFLICT: that checks the proposed row first, and a negative difference is no valid count.
WITH difference AS (
    SELECT new.kind, new.phase, new.count, total.count AS before
    FROM unnest($1::text[], $2::text[], $3::bigint[]) AS new (kind, phase, count)
    LEFT JOIN projections.phase_count AS total USING (kind, phase)
), emptied AS (
    DELETE FROM projections.phase_count AS total
    USING difference AS d
    WHERE total.kind = d.kind AND total.phase = d.phase AND d.before + d.count = 0
), changed AS (
    UPDATE projections.phase_count AS total
    SET count = d.before + d.count
    FROM difference AS d
    WHERE total.kind = d.kind AND total.phase = d.phase AND d.before + d.count <> 0
)
INSERT INTO projections.phase_count (kind, phase, count)
SELECT kind, phase, count FROM difference WHERE before IS NULL
