-- Phase counts of one tree: what is kept by difference, and the root's own phase. $1 root. Returns kind, phase,
-- count. Locks nothing.
SELECT kind, phase, sum(count)::bigint
FROM (
    SELECT kind, phase, count FROM projections.tree_phase_count WHERE root = $1
    UNION ALL
    SELECT kind, phase, 1 FROM projections.resource_phase WHERE id = $1 AND root IS NULL
) AS tree
GROUP BY kind, phase
ORDER BY kind, phase
