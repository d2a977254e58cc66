-- Locks the rows it deletes, at most $2 of each. Forgets command ids and batch fences older than $1 ms.
WITH old AS (
    SELECT floor(extract(epoch FROM now()) * 1000)::bigint - $1 AS before
), commands AS (
    DELETE FROM converge.command
     WHERE command_id IN (SELECT command_id FROM converge.command, old WHERE at < before ORDER BY at LIMIT $2)
    RETURNING 1
), fences AS (
    DELETE FROM converge.batch_fence
     WHERE batch_id IN (SELECT batch_id FROM converge.batch_fence, old WHERE at < before LIMIT $2)
    RETURNING 1
)
SELECT (SELECT count(*) FROM commands) + (SELECT count(*) FROM fences) AS pruned
