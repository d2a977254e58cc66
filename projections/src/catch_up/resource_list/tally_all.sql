-- Phase counts of the fleet, from the table kept by difference. Returns kind, phase, count. Locks nothing.
SELECT kind, phase, count FROM projections.phase_count ORDER BY kind, phase
