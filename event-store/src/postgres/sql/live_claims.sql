-- No locks. How many claims of kind $1 at version $2 are live, by the primary key.
SELECT count(*) FROM converge.claim WHERE kind = $1 AND kind_version = $2
