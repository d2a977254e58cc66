-- Empties the projection's tables before a build from the start. Locks the rows until commit.
-- Not TRUNCATE: its lock would keep readers out until the commit, and snapshots taken before it would
-- see empty tables.
WITH listed AS (DELETE FROM projections.resource_list),
     phases AS (DELETE FROM projections.resource_phase),
     gone AS (DELETE FROM projections.resource_gone),
     trees AS (DELETE FROM projections.tree_phase_count)
DELETE FROM projections.phase_count
