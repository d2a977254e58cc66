-- Takes the partition lock. Builds partitions of $2 positions until $1 are free ahead; returns the last position with one.
SELECT converge.ensure_partition($1, $2) AS last
