-- What became of a batch whose connection was lost during the append call.

-- Batches given up by `find_batch`: they must not commit any more. Nearly always empty.
CREATE TABLE converge.batch_fence (
    batch_id uuid   PRIMARY KEY,
    at       bigint NOT NULL
);

-- Locks: the log lock, until the end of this call's transaction. An appender holds it from before it writes its batch
-- row until its transaction has ended, so when it is granted here, the lost call is in one of three states:
--   * it committed: the batch row is there, and is returned;
--   * it rolled back: there is no row, and never will be;
--   * its backend still works towards the log lock (the server need not have noticed the lost connection). No look at
--     the tables can tell this from a rollback, so the batch is fenced: the appender looks for the fence after it
--     gets the log lock, in a new statement, and then raises CV003.
-- Returns one row if the batch committed; none means that it never will.
CREATE FUNCTION converge.find_batch(p_batch_id uuid)
RETURNS TABLE (first_position bigint, event_count integer, committed_at_us bigint)
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog AS $$
BEGIN
    PERFORM pg_advisory_xact_lock(4850371921000);
    RETURN QUERY
        SELECT b.first_position, b.count, (extract(epoch FROM b.committed_at) * 1000000)::bigint
          FROM converge.append_batch b WHERE b.batch_id = p_batch_id;
    IF NOT FOUND THEN
        INSERT INTO converge.batch_fence AS f (batch_id, at)
        VALUES (p_batch_id, (extract(epoch FROM clock_timestamp()) * 1000)::bigint)
            ON CONFLICT DO NOTHING;
    END IF;
END $$;

