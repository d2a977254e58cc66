-- Adds differences to the phase counts. $1 kinds, $2 phases, $3 differences, each pair once and in order.
-- Locks the rows it changes until commit.
INSERT INTO projections.phase_count AS total (kind, phase, count)
SELECT * FROM unnest($1::text[], $2::text[], $3::bigint[])
ON CONFLICT (kind, phase) DO UPDATE SET count = total.count + excluded.count
