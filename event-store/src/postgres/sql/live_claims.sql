-- No locks. How many claims of kind $1 at version $2 are live, by the primary key; 0 if its policy does not cap it.
SELECT count(*) FROM converge.capped_claim WHERE kind = $1 AND kind_version = $2
