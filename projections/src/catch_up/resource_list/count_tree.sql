-- Adds differences to the phase counts of trees. $1 roots, $2 kinds, $3 phases, $4 differences, each triple once
-- and in order. As count.sql.
WITH difference AS (
    SELECT new.root, new.kind, new.phase, new.count, total.count AS before
    FROM unnest($1::uuid[], $2::text[], $3::text[], $4::bigint[]) AS new (root, kind, phase, count)
    LEFT JOIN projections.tree_phase_count AS total USING (root, kind, phase)
), emptied AS (
    DELETE FROM projections.tree_phase_count AS total
    USING difference AS d
    WHERE total.root = d.root AND total.kind = d.kind AND total.phase = d.phase AND d.before + d.count = 0
), changed AS (
    UPDATE projections.tree_phase_count AS total
    SET count = d.before + d.count
    FROM difference AS d
    WHERE total.root = d.root AND total.kind = d.kind AND total.phase = d.phase AND d.before + d.count <> 0
)
INSERT INTO projections.tree_phase_count (root, kind, phase, count)
SELECT root, kind, phase, count FROM difference WHERE before IS NULL
