-- Which index finds the resources of some phases in one tree sooner: the phase's or the tree's. $1 phases, $2 kind or
-- null, $3 root, or null: the root above $4. Returns how many are in those phases anywhere (`everywhere`), in
-- the tree (`here`), and how large the tree is (`tree`). From counts kept by difference. Locks nothing.
WITH top AS (
    SELECT coalesce($3::uuid, (SELECT root FROM projections.resource_list WHERE id = $4::uuid)) AS root
), counted AS (
    SELECT count.phase, count.count
    FROM top JOIN projections.tree_phase_count AS count USING (root)
    WHERE $2::text IS NULL OR kind = $2
    UNION ALL
    SELECT phase, 1
    FROM projections.resource_phase
    WHERE id = (SELECT root FROM top) AND ($2::text IS NULL OR kind = $2)
)
SELECT (SELECT coalesce(sum(count), 0)::bigint FROM projections.phase_count
        WHERE phase = ANY ($1) AND ($2::text IS NULL OR kind = $2)) AS everywhere,
       coalesce(sum(count) FILTER (WHERE phase = ANY ($1)), 0)::bigint AS here,
       coalesce(sum(count), 0)::bigint AS tree
FROM counted
