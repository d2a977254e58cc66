-- Phase counts of the fleet, from the table kept by difference. Returns kind, phase, count.
SELECT kind, phase, count FROM projections.phase_count WHERE count > 0 ORDER BY kind, phase
