-- Takes the session's advisory lock. Live claims made under session $1, by id, at most $2; a session that has none is
-- forgotten. Walks all heads, but only for a session that may hold claims, and only dead ones are asked about.
SELECT id FROM converge.claims_of($1, $2) AS c(id)
