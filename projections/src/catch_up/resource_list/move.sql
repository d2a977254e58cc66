-- Stores phases that changed, or what they are derived from. $1 ids, $2 phases, $3 bases. Locks the rows it
-- writes until commit.
UPDATE projections.resource_phase AS row
SET phase = new.phase, basis = new.basis::json
FROM unnest($1::uuid[], $2::text[], $3::text[]) AS new (id, phase, basis)
WHERE row.id = new.id
