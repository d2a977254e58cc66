-- Takes resources whose stream has ended off the list, and remembers who they were. $1 ids. Locks those rows
-- until commit.
WITH phase AS (
    DELETE FROM projections.resource_phase WHERE id = ANY ($1)
), gone AS (
    DELETE FROM projections.resource_list WHERE id = ANY ($1)
    RETURNING id, kind, name, ancestors, created_position
)
INSERT INTO projections.resource_gone (id, kind, name, ancestors, created_position)
SELECT id, kind, name, ancestors, created_position FROM gone
