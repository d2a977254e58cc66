-- Phase counts of one tree, counted along the index resource_list_tally. $1 root.
SELECT kind, phase, count(*) FROM projections.resource_list WHERE root = $1 GROUP BY kind, phase ORDER BY kind, phase
