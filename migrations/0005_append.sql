-- The append call again, cheaper: new and changed heads come apart, narrow rows come as lists of just the rows to write,
-- heads are read once, and live claims have rows only where somebody counts them.

-- The state is only ever written and read as a whole, by clients that made it: text saves the parse of every write.
-- Rewrites the table, at some seconds for a million heads.
ALTER TABLE converge.head ALTER COLUMN state TYPE text USING state::text;

-- WHY A CLAIM NEEDS NO ROW. A live claim is on its head (`claim_version`, `claim_session`). Two questions go over many
-- claims: how many of a kind are live (asked by its cap, at every claim), and which a dead process left (asked when a
-- process has died). The first gets rows, kept for capped kinds alone. The second gets the list of the sessions that
-- may hold any, one row for each process, and a walk over the heads when one of them is dead.
DROP TABLE converge.claim;

-- Live claims of the kind versions whose policy caps them, and of no others.
CREATE TABLE converge.capped_claim (
    kind         text     NOT NULL,
    kind_version smallint NOT NULL,
    id           uuid     NOT NULL,
    PRIMARY KEY (kind, kind_version, id)
);
ALTER TABLE converge.capped_claim SET (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 20000);

INSERT INTO converge.capped_claim (kind, kind_version, id)
SELECT h.kind, h.claim_version, h.id
  FROM converge.head h
  JOIN converge.kind_policy k ON k.kind = h.kind AND k.kind_version = h.claim_version AND k.max_inflight > 0
 WHERE h.claim_session IS NOT NULL;

-- Sessions that may hold live claims: every one that holds some is here, one that holds none may be.
CREATE TABLE converge.claimant (
    session uuid PRIMARY KEY
);
INSERT INTO converge.claimant (session)
SELECT DISTINCT claim_session FROM converge.head WHERE claim_session IS NOT NULL;

-- The live claims of a session, by id, at most `p_limit`. One that holds none is forgotten as a claimant.
--
-- Locks: the session's advisory lock, exclusively and alone, so no deadlock. Appends that give the session a claim
-- hold it shared until they end, and make sure of the claimant's row after they got it. So with the lock held, either
-- such an append has ended and the walk (a new statement) sees its claims; or it comes later, finds the row gone, and
-- writes it again. A session without a row therefore has no claims, and nothing is walked for it.
CREATE FUNCTION converge.claims_of(p_session uuid, p_limit bigint) RETURNS SETOF uuid
LANGUAGE plpgsql VOLATILE SET enable_seqscan = on SET search_path = pg_catalog AS $$
BEGIN
    PERFORM pg_advisory_xact_lock(485037193, hashtext(p_session::text));
    IF NOT EXISTS (SELECT 1 FROM converge.claimant c WHERE c.session = p_session) THEN
        RETURN;
    END IF;
    RETURN QUERY
        SELECT h.id FROM converge.head h WHERE h.claim_session = p_session ORDER BY h.id LIMIT p_limit;
    IF NOT FOUND THEN
        DELETE FROM converge.claimant c WHERE c.session = p_session;
    END IF;
END $$;

-- Makes the rows of kinds that were not capped so far. Walks all heads once: `append` calls it when a policy starts to
-- cap, which is when somebody edits a kind. A function of its own, so that the walk is planned as one.
--
-- Locks: the rows it inserts; the caller holds the claims gate exclusively.
CREATE FUNCTION converge.count_claims(p_kind text[], p_version smallint[]) RETURNS void
LANGUAGE plpgsql VOLATILE SET enable_seqscan = on SET enable_hashjoin = on SET search_path = pg_catalog AS $$
BEGIN
    INSERT INTO converge.capped_claim (kind, kind_version, id)
    SELECT h.kind, h.claim_version, h.id
      FROM converge.head h
      JOIN unnest(p_kind, p_version) w(kind, version) ON h.kind = w.kind AND h.claim_version = w.version
     WHERE h.claim_session IS NOT NULL
        ON CONFLICT DO NOTHING;
END $$;

-- The units with a guard that does not hold. Rows under a parent may be a million, so they are asked for along an
-- index, up to the first.
--
-- Locks: none. `append` calls it with the heads locked; as a function of its own it is planned and takes its snapshot
-- by itself.
CREATE FUNCTION converge.failed_guards(
    p_unit integer[], p_code smallint[], p_id uuid[], p_sequence bigint[], p_pass uuid[], p_standing smallint[]
) RETURNS SETOF integer
LANGUAGE plpgsql VOLATILE
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off SET enable_indexscan = on SET enable_indexonlyscan = on SET enable_bitmapscan = off
SET search_path = pg_catalog
AS $$
BEGIN
    -- OFFSET 0 keeps a subquery as it is written: probed for each guard, and never read as a whole for a hash.
    RETURN QUERY
    SELECT g.unit
      FROM unnest(p_unit, p_code, p_id, p_sequence, p_pass, p_standing) g(unit, code, id, sequence, pass, standing)
      LEFT JOIN LATERAL (
            SELECT f.id, f.sequence, f.phase, f.pass_id, f.subtree FROM converge.head f WHERE f.id = g.id OFFSET 0
           ) h ON true
     WHERE NOT CASE g.code
        WHEN 1 THEN COALESCE(h.sequence, 0) = g.sequence                                  -- unmoved
        WHEN 2 THEN COALESCE(h.phase = 5, false)                                          -- upstream ready
        WHEN 3 THEN h.id IS NOT NULL AND h.phase IS DISTINCT FROM 0 AND h.pass_id IS NULL -- ancestor quiet
        WHEN 4 THEN h.id IS NOT NULL AND h.phase IS DISTINCT FROM 0
                    AND COALESCE(h.pass_id = g.pass, false)                               -- in pass
        WHEN 5 THEN COALESCE(h.subtree >= g.standing, false)                              -- subtree at least
        WHEN 6 THEN NOT EXISTS (SELECT 1 FROM converge.child c WHERE c.mark = 1 AND c.parent = g.id OFFSET 0)
        WHEN 7 THEN NOT EXISTS (SELECT 1 FROM converge.child c WHERE c.mark = 1 AND c.parent = g.id OFFSET 0)
                AND NOT EXISTS (SELECT 1 FROM converge.child c WHERE c.mark = 2 AND c.parent = g.id OFFSET 0)
        WHEN 8 THEN NOT EXISTS (SELECT 1 FROM converge.edge e WHERE e.upstream = g.id OFFSET 0)    -- no dependents
        WHEN 9 THEN NOT EXISTS (SELECT 1 FROM converge.head c WHERE c.parent = g.id OFFSET 0)      -- no children
        ELSE false END;
END $$;

-- The end of the log, by the ends of two indexes. Called under the log lock, in a statement after the one that took it.
--
-- Locks: none.
CREATE FUNCTION converge.end_of_log(
    OUT next_position bigint, OUT committed_at timestamptz, OUT chain bytea, OUT room bigint
)
LANGUAGE plpgsql VOLATILE
SET enable_indexscan = on SET enable_seqscan = off SET enable_bitmapscan = off SET search_path = pg_catalog
AS $$
BEGIN
    SELECT b.first_position + b.count, b.committed_at, b.chain INTO next_position, committed_at, chain
      FROM converge.append_batch b ORDER BY b.first_position DESC LIMIT 1;
    SELECT p.last_position INTO room FROM converge.event_partition p ORDER BY p.last_position DESC LIMIT 1;
END $$;

-- Updates and removes heads at their addresses, in the order of the arrays; returns how many it updated. A head that
-- moved has another address, or another sequence once its writer has committed: it is left alone.
--
-- Locks: the heads, in the order of the arrays. Every way to a head but by its address is disabled, so the arrays are
-- walked and nothing else.
CREATE FUNCTION converge.write_heads(
    p_batch_id uuid, p_failed boolean[], p_row tid[], p_unit integer[], p_id uuid[], p_expected bigint[],
    p_sequence bigint[], p_version smallint[], p_phase smallint[], p_standing smallint[], p_subtree smallint[],
    p_pass uuid[], p_outward bigint[], p_state text[], p_removed boolean[], p_queue_op smallint[],
    p_queue_version smallint[], p_queue_priority smallint[], p_queue_due_at bigint[], p_timer_op smallint[],
    p_timer_due_at bigint[], p_child_op smallint[], p_child_mark smallint[], p_child_parent uuid[],
    p_claim_op smallint[], p_claim_version smallint[], p_claim_session uuid[]
) RETURNS bigint
LANGUAGE plpgsql VOLATILE
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off SET enable_indexscan = off SET enable_indexonlyscan = off SET enable_bitmapscan = off
SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off
SET search_path = pg_catalog
AS $$
DECLARE
    v_written bigint;
BEGIN
    UPDATE converge.head h
       SET kind_version = w.version, sequence = w.sequence, phase = w.phase, standing = w.standing,
           subtree = w.subtree, pass_id = w.pass, outward = w.outward, batch_id = p_batch_id, state = w.state,
           queue_version  = CASE w.queue_op WHEN 0 THEN h.queue_version  ELSE w.queue_version  END,
           queue_priority = CASE w.queue_op WHEN 0 THEN h.queue_priority ELSE w.queue_priority END,
           queue_due_at   = CASE w.queue_op WHEN 0 THEN h.queue_due_at   ELSE w.queue_due_at   END,
           timer_due_at   = CASE w.timer_op WHEN 0 THEN h.timer_due_at   ELSE w.timer_due_at   END,
           child_mark     = CASE w.child_op WHEN 0 THEN h.child_mark     ELSE w.child_mark     END,
           child_parent   = CASE w.child_op WHEN 0 THEN h.child_parent   ELSE w.child_parent   END,
           claim_version  = CASE w.claim_op WHEN 0 THEN h.claim_version  ELSE w.claim_version  END,
           claim_session  = CASE w.claim_op WHEN 0 THEN h.claim_session  ELSE w.claim_session  END
      FROM unnest(p_unit, p_row, p_id, p_expected, p_sequence, p_version, p_phase, p_standing, p_subtree, p_pass, p_outward,
                  p_state, p_removed, p_queue_op, p_queue_version, p_queue_priority, p_queue_due_at, p_timer_op,
                  p_timer_due_at, p_child_op, p_child_mark, p_child_parent, p_claim_op, p_claim_version,
                  p_claim_session)
           w(unit, at, id, expected, sequence, version, phase, standing, subtree, pass, outward, state, removed,
             queue_op, queue_version, queue_priority, queue_due_at, timer_op, timer_due_at, child_op, child_mark,
             child_parent, claim_op, claim_version, claim_session)
     WHERE h.ctid = w.at AND h.id = w.id AND h.sequence = w.expected AND NOT w.removed AND NOT p_failed[w.unit];
    GET DIAGNOSTICS v_written = ROW_COUNT;
    IF true = ANY (p_removed) THEN
        DELETE FROM converge.head h
         USING unnest(p_unit, p_row, p_id, p_removed) w(unit, at, id, removed)
         WHERE h.ctid = w.at AND h.id = w.id AND w.removed AND NOT p_failed[w.unit];
    END IF;
    RETURN v_written;
END $$;

-- Deletes rows of the narrow tables at their addresses.
--
-- Locks: those rows. They belong to heads that the caller has locked, so they are where the caller found them.
CREATE FUNCTION converge.delete_rows(
    p_queue tid[], p_timer tid[], p_child tid[], p_claim tid[], p_edge tid[], p_name tid[]
) RETURNS void
LANGUAGE plpgsql VOLATILE
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off SET enable_indexscan = off SET enable_indexonlyscan = off SET enable_bitmapscan = off
SET search_path = pg_catalog
AS $$
BEGIN
    IF p_queue IS NOT NULL THEN
        DELETE FROM converge.queue WHERE ctid = ANY (p_queue);
    END IF;
    IF p_timer IS NOT NULL THEN
        DELETE FROM converge.timer WHERE ctid = ANY (p_timer);
    END IF;
    IF p_child IS NOT NULL THEN
        DELETE FROM converge.child WHERE ctid = ANY (p_child);
    END IF;
    IF p_claim IS NOT NULL THEN
        DELETE FROM converge.capped_claim WHERE ctid = ANY (p_claim);
    END IF;
    IF p_edge IS NOT NULL THEN
        DELETE FROM converge.edge WHERE ctid = ANY (p_edge);
    END IF;
    IF p_name IS NOT NULL THEN
        DELETE FROM converge.names WHERE ctid = ANY (p_name);
    END IF;
END $$;

DO $$ BEGIN EXECUTE format('DROP FUNCTION %s', 'converge.append'::regproc::regprocedure); END $$;

-- The one way into the log: `append` writes a whole batch in a single server call, or nothing.
--
-- Takes arrays, one per column. `*_unit` is a 1-based index of the unit a row belongs to; a unit that loses a
-- compare-and-set, a guard or a name is left out of the batch and reported, the others are written.
--
-- LOCK ORDER, and why nothing deadlocks. Every append takes its locks level by level:
--   0. the claims gate (shared by batches that touch claims, exclusive for batches that set policies), then the
--      sessions that get claims: their advisory locks, shared, then their rows, by id;
--   1. policy rows, by (kind, version);
--   2. existing heads, written ones exclusively and guarded ones FOR SHARE, by id, each once;
--   3. index entries of new heads, by (kind, name, id);
--   4. rows of the narrow tables: all belong to one head locked in 2 or made in 3, so nobody else can hold them;
--   5. names, by (kind, name); then policy rows (locked in 1, or new and owned by a head made in 3);
--   6. command ids, by id;
--   7. the log lock.
-- Inside a level the order is total and each lock is taken once, in its strongest mode, so two appends cannot
-- wait for each other inside it; and nobody waits at a level while another waits for him at a lower one. (Advisory
-- locks of sessions are only ever shared here, and whoever wants one exclusively, `claims_of`, has no other lock.)
-- The one unsorted wait is for a name that another batch is freeing: the taker has *checked* the name as free,
-- so the check came before the present holder committed, which came before the freeing batch could lock that
-- holder's head, which came before that batch's own check. Around a cycle of such waits every check would
-- precede itself, so there is no cycle.
--
-- TWO WAYS THROUGH LEVEL 2. A batch with guards over heads, with heads to remove or with names to free sends the
-- heads to lock, as runs of one mode. They are locked first, then everything is checked.
--   Any other batch sends none. Its heads are read without a lock, and the UPDATE that writes them, in the order of
-- ids, takes their locks and compares their sequences again, before anything else is written. Sequences rise with every
-- write, so a head that still has the sequence that was read is the version that was read, its address and the keys of
-- its narrow rows included. If one moved in between, the UPDATE skips it, the count is short, and the call raises CV004:
-- nothing is written, and the store calls again with the heads to lock, which tells the units apart. The proof about
-- names above needs "lock, then check" of the batch that frees one, and nothing of the batch that takes it. A removal
-- would lock heads in a second pass over the ids, out of order. Nothing else that is checked hangs on the lock of a
-- written head. (An address may be given to another row only after the old version is dead to all and vacuumed, and the
-- update compares the id as well.)
--
-- WHY GUARDS SEE EVERY COMMITTED FACT. Under READ COMMITTED each statement of a volatile function has a snapshot
-- of its own. Guards are checked in a statement that begins after all locks of level 2 are held. A transaction
-- that changed a guarded fact held a lock on a head that is locked here (the guarded head itself, or the owner
-- whose rows it touches). Either it committed before the lock was granted, and the new snapshot contains it; or
-- it waits behind this one, and finds the heads moved. Checking inside the statement that locks would use a
-- snapshot from before the wait. Absent heads cannot be locked, but ids of resources are never used twice, so
-- the absence of a deleted one is final.
--
-- WHY CAPS COUNT EVERY LIVE CLAIM. A claim has a row in `capped_claim` exactly if its kind's policy caps it. A batch that
-- starts or ends claims holds the gate shared, so the policies it reads stay as they are until it has ended. A batch
-- that sets a policy holds it exclusively: no claim is on its way, the heads show all of them, and the rows of that kind
-- are made or dropped from them. Of two claims under one cap, the second waits for the policy row (level 1), and counts
-- in a statement after it.
--
-- WHY POSITIONS ARE DENSE AND IN COMMIT ORDER. The log lock is held from before the last batch row is read until
-- the transaction has ended, so transactions that give positions run one after another here. The last row is
-- read by a statement that begins after the lock was granted. The server releases the lock of a committing
-- transaction after making the transaction visible, so that statement sees the batch of every earlier holder. It gives the
-- positions right behind it: no gap, because a rolled-back holder left no row; no overlap, because nobody else
-- is reading; and a reader that sees a position sees all before it, because they became visible earlier.
-- The lock comes last so that as little as possible runs under it: events, the batch row, the notification.
--
-- Reads nothing of the host's clock but for `committed_at`, which never goes back.
-- Returns one row; `count` = 0 means that no unit survived and nothing was written.
-- Raises CV001 when the last partition is full, CV002 under a wrong isolation level, CV003 when `find_batch` gave the
-- batch up before it reached the log lock, CV004 when a head moved between its read and its update.
CREATE FUNCTION converge.append(
    p_batch_id uuid,
    p_units integer,
    -- level 0: the sessions under which claims start, sorted
    p_session uuid[],
    -- level 1: policy rows, sorted by (kind, version)
    p_cap_kind text[], p_cap_version smallint[],
    -- level 2: all heads to lock, sorted by id and cut into runs of one mode each; or none
    p_lock_id uuid[], p_run_end integer[], p_run_exclusive boolean[],
    -- new heads, sorted by (kind, name, id), with the keys of their narrow rows
    p_new_unit integer[], p_new_id uuid[], p_new_type text[], p_new_sequence bigint[],
    p_new_kind text[], p_new_version smallint[], p_new_name text[], p_new_parent uuid[],
    p_new_phase smallint[], p_new_standing smallint[], p_new_subtree smallint[], p_new_pass uuid[],
    p_new_outward bigint[], p_new_state text[],
    p_new_queue_version smallint[], p_new_queue_priority smallint[], p_new_queue_due_at bigint[],
    p_new_timer_due_at bigint[], p_new_child_mark smallint[], p_new_child_parent uuid[],
    p_new_claim_version smallint[], p_new_claim_session uuid[],
    -- heads that exist, sorted by id; ops: 0 leave, 1 delete, 2 set; a head that comes and goes in one batch counts as
    -- an existing one at sequence 0
    p_old_unit integer[], p_old_id uuid[], p_old_expected bigint[], p_old_sequence bigint[],
    p_old_kind text[], p_old_version smallint[],
    p_old_phase smallint[], p_old_standing smallint[], p_old_subtree smallint[], p_old_pass uuid[],
    p_old_outward bigint[], p_old_state text[], p_old_removed boolean[],
    p_old_queue_op smallint[], p_old_queue_version smallint[], p_old_queue_priority smallint[],
    p_old_queue_due_at bigint[], p_old_timer_op smallint[], p_old_timer_due_at bigint[],
    p_old_child_op smallint[], p_old_child_mark smallint[], p_old_child_parent uuid[],
    p_old_claim_op smallint[], p_old_claim_version smallint[], p_old_claim_session uuid[],
    -- what there is to do at all: old rows to delete in queue, timer, child, claim; heads to remove; rows to insert in
    -- queue, timer, child, claim
    p_has boolean[],
    -- names, sorted by (kind, name)
    p_take_unit integer[], p_take_kind text[], p_take_name text[], p_take_id uuid[],
    p_free_unit integer[], p_free_kind text[], p_free_name text[], p_free_id uuid[],
    -- edges
    p_link_unit integer[], p_link_dependent uuid[], p_link_upstream uuid[],
    p_cut_unit integer[], p_cut_dependent uuid[], p_cut_upstream uuid[],
    -- kind policies
    p_policy_unit integer[], p_policy_kind text[], p_policy_version smallint[], p_policy_max integer[],
    -- guards; `p_capped_*` are the cap guards, sorted by unit, with a 1-based index into `p_cap_*`
    p_guard_unit integer[], p_guard_code smallint[], p_guard_id uuid[], p_guard_sequence bigint[],
    p_guard_pass uuid[], p_guard_standing smallint[],
    p_capped_unit integer[], p_capped_index integer[],
    -- command ids, sorted
    p_command_unit integer[], p_command_id uuid[],
    -- events, in the order of their positions, and their digests of 32 bytes, one behind the other
    p_event_unit integer[], p_event_type text[], p_event_id uuid[], p_event_sequence bigint[],
    p_event_name text[], p_event_version text[], p_event_payload text[], p_event_metadata text[],
    p_event_digests bytea,
    OUT first_position bigint, OUT event_count integer, OUT committed_at_us bigint,
    OUT conflict_unit integer[], OUT conflict_code smallint[]
)
LANGUAGE plpgsql VOLATILE
-- Plans are made once, maybe when a table was empty, and must be right when it is full. A queue that was vacuumed when
-- it was empty looks as if reading all of it were cheaper than ten probes, and the next burst would then compare all with
-- all. So tables are read by `LATERAL (… OFFSET 0)` only, which can but be the inner side of a walk over the arrays, and
-- written by row address, in functions that leave the planner no other way.
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off
SET search_path = pg_catalog
AS $$
DECLARE
    v_failed     boolean[] := array_fill(false, ARRAY[p_units]);
    v_start      integer := 1;
    -- Per head of `p_old_id`, as found: its address, its sequence, the keys of its narrow rows.
    v_row        tid[];
    v_sequence   bigint[];
    v_queue_version  smallint[];
    v_queue_priority smallint[];
    v_queue_due_at   bigint[];
    v_timer_due_at   bigint[];
    v_child_mark     smallint[];
    v_child_parent   uuid[];
    v_claim_version  smallint[];
    -- Whether a name is taken by whoever has it already.
    v_own        boolean := false;
    v_payload    json[];
    v_metadata   json[];
    -- Addresses of rows to delete.
    v_queue_row  tid[];
    v_timer_row  tid[];
    v_child_row  tid[];
    v_claim_row  tid[];
    v_edge_row   tid[];
    v_name_row   tid[];
    v_capped     boolean;
    v_written    bigint;
    v_count      bigint;
    v_left       bigint[];
    v_left_saved bigint[];
    v_newly_kind    text[];
    v_newly_version smallint[];
    v_unit       integer := 0;
    v_lost       smallint[];
    v_digest     bytea;
    v_last       record;
    v_now        timestamptz;
    v_hit        record;
    i            integer;
BEGIN
    IF current_setting('transaction_isolation') <> 'read committed' THEN
        RAISE EXCEPTION 'append runs under READ COMMITTED only' USING ERRCODE = 'CV002';
    END IF;

    -- Level 0. What is looked up under these locks is looked up in statements of its own.
    IF cardinality(p_policy_kind) > 0 THEN
        PERFORM pg_advisory_xact_lock(4850371921002);
    ELSIF p_has[4] OR p_has[9] THEN
        PERFORM pg_advisory_xact_lock_shared(4850371921002);
    END IF;
    IF cardinality(p_session) > 0 THEN
        FOR i IN 1 .. cardinality(p_session) LOOP
            PERFORM pg_advisory_xact_lock_shared(485037193, hashtext(p_session[i]::text));
        END LOOP;
        INSERT INTO converge.claimant (session)
        SELECT s.id FROM unnest(p_session) s(id)
         WHERE NOT EXISTS (SELECT 1 FROM converge.claimant c WHERE c.session = s.id OFFSET 0)
            ON CONFLICT DO NOTHING;
    END IF;

    -- Level 1.
    IF cardinality(p_cap_kind) > 0 THEN
        PERFORM 1 FROM converge.kind_policy k
          JOIN unnest(p_cap_kind, p_cap_version) c(kind, version) ON k.kind = c.kind AND k.kind_version = c.version
         WHERE k.max_inflight > 0 OR cardinality(p_policy_kind) > 0
         ORDER BY k.kind COLLATE "C", k.kind_version
           FOR UPDATE OF k;
    END IF;

    -- Level 2. The ids are sorted by the client; a run never mixes modes, so each row is locked once.
    FOR i IN 1 .. cardinality(p_run_end) LOOP
        IF p_run_exclusive[i] THEN
            PERFORM 1 FROM converge.head h WHERE h.id = ANY (p_lock_id[v_start:p_run_end[i]]) ORDER BY h.id FOR UPDATE;
        ELSE
            PERFORM 1 FROM converge.head h WHERE h.id = ANY (p_lock_id[v_start:p_run_end[i]]) ORDER BY h.id FOR SHARE;
        END IF;
        v_start := p_run_end[i] + 1;
    END LOOP;

    -- The heads as they are, and the keys of their narrow rows. LATERAL leaves a walk over the ids in their order as the
    -- only plan, so each array is in the order of `p_old_id`.
    IF cardinality(p_old_id) > 0 THEN
        SELECT array_agg(h.ctid), array_agg(COALESCE(h.sequence, 0)), array_agg(h.queue_version),
               array_agg(h.queue_priority), array_agg(h.queue_due_at), array_agg(h.timer_due_at), array_agg(h.child_mark),
               array_agg(h.child_parent), array_agg(h.claim_version)
          INTO v_row, v_sequence, v_queue_version, v_queue_priority, v_queue_due_at, v_timer_due_at, v_child_mark,
               v_child_parent, v_claim_version
          FROM unnest(p_old_id) w(id)
          LEFT JOIN LATERAL (
                SELECT f.ctid, f.sequence, f.queue_version, f.queue_priority, f.queue_due_at, f.timer_due_at,
                       f.child_mark, f.child_parent, f.claim_version
                  FROM converge.head f WHERE f.id = w.id OFFSET 0
               ) h ON true;
    END IF;

    -- The checks: new statements, after the locks. The lowest code of a unit wins: a command that was executed
    -- before says so, and a name only counts as taken for a decision that is otherwise still right.
    IF cardinality(p_take_unit) > 0 THEN
        FOR v_hit IN
            SELECT t.unit, n.id = t.id AS own
              FROM unnest(p_take_unit, p_take_kind, p_take_name, p_take_id) t(unit, kind, name, id)
             CROSS JOIN LATERAL (
                    SELECT m.id FROM converge.names m WHERE m.kind = t.kind AND m.name = t.name OFFSET 0
                   ) n
             WHERE n.id = t.id
                OR NOT EXISTS (SELECT 1 FROM unnest(p_free_unit, p_free_kind, p_free_name) f(unit, kind, name)
                                WHERE f.unit = t.unit AND f.kind = t.kind AND f.name = t.name)
        LOOP
            IF v_hit.own THEN
                v_own := true;
            ELSE
                v_failed[v_hit.unit] := true;
                v_lost[v_hit.unit] := 4;
            END IF;
        END LOOP;
    END IF;
    IF cardinality(p_guard_unit) > 0 THEN
        FOR v_hit IN
            SELECT g.unit
              FROM converge.failed_guards(p_guard_unit, p_guard_code, p_guard_id, p_guard_sequence, p_guard_pass,
                                          p_guard_standing) g(unit)
        LOOP
            v_failed[v_hit.unit] := true;
            v_lost[v_hit.unit] := 3;
        END LOOP;
    END IF;
    IF cardinality(p_new_id) > 0 THEN
        FOR v_hit IN
            SELECT w.unit FROM unnest(p_new_unit, p_new_id) w(unit, id)
             WHERE EXISTS (SELECT 1 FROM converge.head h WHERE h.id = w.id OFFSET 0)
        LOOP
            v_failed[v_hit.unit] := true;
            v_lost[v_hit.unit] := 2;
        END LOOP;
    END IF;
    IF v_sequence <> p_old_expected THEN
        FOR i IN 1 .. cardinality(v_sequence) LOOP
            IF v_sequence[i] <> p_old_expected[i] THEN
                v_failed[p_old_unit[i]] := true;
                v_lost[p_old_unit[i]] := 2;
            END IF;
        END LOOP;
    END IF;
    IF cardinality(p_command_unit) > 0 THEN
        FOR v_hit IN
            SELECT c.unit FROM unnest(p_command_unit, p_command_id) c(unit, id)
             WHERE EXISTS (SELECT 1 FROM converge.command x WHERE x.command_id = c.id OFFSET 0)
        LOOP
            v_failed[v_hit.unit] := true;
            v_lost[v_hit.unit] := 1;
        END LOOP;
    END IF;
    conflict_unit := '{}';
    conflict_code := '{}';
    IF v_lost IS NOT NULL THEN
        FOR i IN 1 .. p_units LOOP
            IF v_failed[i] THEN
                conflict_unit := conflict_unit || i;
                conflict_code := conflict_code || v_lost[i];
            END IF;
        END LOOP;
    END IF;

    -- Caps. The policy row is locked, so no other claim of the kind is in flight: the live rows, counted in this
    -- new statement, and the claims that survive here are all there are. A claim that ends in this same batch still
    -- counts; the cap is then reached a batch later.
    IF cardinality(p_capped_unit) > 0 THEN
        SELECT array_agg(CASE WHEN COALESCE(k.max_inflight, 0) = 0 THEN 9223372036854775807
               ELSE k.max_inflight - (SELECT count(*) FROM converge.capped_claim l
                                       WHERE l.kind = c.kind AND l.kind_version = c.version) END ORDER BY c.ord)
          INTO v_left
          FROM unnest(p_cap_kind, p_cap_version) WITH ORDINALITY c(kind, version, ord)
          LEFT JOIN converge.kind_policy k ON k.kind = c.kind AND k.kind_version = c.version;
        FOR i IN 1 .. cardinality(p_capped_unit) LOOP
            IF p_capped_unit[i] <> v_unit THEN
                v_unit := p_capped_unit[i];
                v_left_saved := v_left;
            END IF;
            CONTINUE WHEN v_failed[v_unit];
            IF v_left[p_capped_index[i]] > 0 THEN
                v_left[p_capped_index[i]] := v_left[p_capped_index[i]] - 1;
            ELSE
                v_left := v_left_saved;
                v_failed[v_unit] := true;
                conflict_unit := conflict_unit || v_unit;
                conflict_code := conflict_code || 3::smallint;
            END IF;
        END LOOP;
    END IF;

    first_position := 0;
    event_count := 0;
    committed_at_us := 0;
    IF cardinality(conflict_unit) = p_units THEN
        committed_at_us := (extract(epoch FROM clock_timestamp()) * 1000000)::bigint;
        RETURN;
    END IF;

    -- Level 2 of a batch that sent no locks; the others have them already, and write in any order.
    IF cardinality(p_old_id) > 0 THEN
        v_written := converge.write_heads(
            p_batch_id, v_failed, v_row, p_old_unit, p_old_id, p_old_expected, p_old_sequence, p_old_version, p_old_phase,
            p_old_standing, p_old_subtree, p_old_pass, p_old_outward, p_old_state, p_old_removed, p_old_queue_op,
            p_old_queue_version, p_old_queue_priority, p_old_queue_due_at, p_old_timer_op, p_old_timer_due_at,
            p_old_child_op, p_old_child_mark, p_old_child_parent, p_old_claim_op, p_old_claim_version,
            p_old_claim_session);
        IF cardinality(p_run_end) = 0 THEN
            SELECT count(*) INTO v_count FROM unnest(p_old_unit, p_old_removed) w(unit, removed)
             WHERE NOT w.removed AND NOT v_failed[w.unit];
            IF v_written <> v_count THEN
                RAISE EXCEPTION 'a head moved after it was read' USING ERRCODE = 'CV004';
            END IF;
        END IF;
    END IF;
    -- Level 3. A concurrent insert of the same id raises 23505: the whole call is then tried again.
    IF cardinality(p_new_id) > 0 THEN
        INSERT INTO converge.head (id, aggregate_type, kind, kind_version, name, parent, sequence, phase, standing, subtree,
               pass_id, outward, created_batch, batch_id, queue_version, queue_priority, queue_due_at, timer_due_at,
               child_mark, child_parent, claim_version, claim_session, state)
        SELECT w.id, w.type, w.kind, w.version, w.name, w.parent, w.sequence, w.phase, w.standing, w.subtree,
               w.pass, w.outward, p_batch_id, p_batch_id, w.queue_version, w.queue_priority, w.queue_due_at,
               w.timer_due_at, w.child_mark, w.child_parent, w.claim_version, w.claim_session, w.state
          FROM unnest(p_new_unit, p_new_id, p_new_type, p_new_sequence, p_new_kind,
                      p_new_version, p_new_name, p_new_parent, p_new_phase, p_new_standing, p_new_subtree,
                      p_new_pass, p_new_outward, p_new_state, p_new_queue_version, p_new_queue_priority,
                      p_new_queue_due_at, p_new_timer_due_at, p_new_child_mark, p_new_child_parent,
                      p_new_claim_version, p_new_claim_session)
               w(unit, id, type, sequence, kind, version, name, parent, phase, standing, subtree, pass,
                 outward, state, queue_version, queue_priority, queue_due_at, timer_due_at, child_mark,
                 child_parent, claim_version, claim_session)
         WHERE NOT v_failed[w.unit];
    END IF;

    -- Level 4: narrow rows. The old row is found by the key its head remembers; it is its head's own, so its address
    -- stays what it is.
    IF p_has[1] THEN
        SELECT array_agg(q.ctid) INTO v_queue_row
          FROM unnest(p_old_unit, p_old_id, p_old_kind, p_old_queue_op, p_old_removed, v_queue_version,
                      v_queue_priority, v_queue_due_at)
               w(unit, id, kind, op, removed, version, priority, due_at)
         CROSS JOIN LATERAL (
                SELECT r.ctid FROM converge.queue r
                 WHERE r.kind = w.kind AND r.kind_version = w.version AND r.priority = w.priority
                   AND r.due_at = w.due_at AND r.id = w.id OFFSET 0
               ) q
         WHERE (w.op <> 0 OR w.removed) AND w.due_at IS NOT NULL AND NOT v_failed[w.unit];
    END IF;
    IF p_has[2] THEN
        SELECT array_agg(t.ctid) INTO v_timer_row
          FROM unnest(p_old_unit, p_old_id, p_old_timer_op, p_old_removed, v_timer_due_at)
               w(unit, id, op, removed, due_at)
         CROSS JOIN LATERAL (
                SELECT r.ctid FROM converge.timer r WHERE r.due_at = w.due_at AND r.id = w.id OFFSET 0
               ) t
         WHERE (w.op <> 0 OR w.removed) AND w.due_at IS NOT NULL AND NOT v_failed[w.unit];
    END IF;
    IF p_has[3] THEN
        SELECT array_agg(c.ctid) INTO v_child_row
          FROM unnest(p_old_unit, p_old_id, p_old_child_op, p_old_removed, v_child_mark, v_child_parent)
               w(unit, id, op, removed, mark, parent)
         CROSS JOIN LATERAL (
                SELECT r.ctid FROM converge.child r
                 WHERE r.mark = w.mark AND r.parent = w.parent AND r.id = w.id OFFSET 0
               ) c
         WHERE (w.op <> 0 OR w.removed) AND w.mark IS NOT NULL AND NOT v_failed[w.unit];
    END IF;
    -- Claims of capped kinds. Most installations cap few kinds or none.
    v_capped := (p_has[4] OR p_has[9]) AND EXISTS (SELECT 1 FROM converge.kind_policy k WHERE k.max_inflight > 0);
    IF v_capped AND p_has[4] THEN
        SELECT array_agg(l.ctid) INTO v_claim_row
          FROM unnest(p_old_unit, p_old_id, p_old_kind, p_old_claim_op, p_old_removed, v_claim_version)
               w(unit, id, kind, op, removed, version)
         CROSS JOIN LATERAL (
                SELECT r.ctid FROM converge.capped_claim r
                 WHERE r.kind = w.kind AND r.kind_version = w.version AND r.id = w.id OFFSET 0
               ) l
         WHERE (w.op <> 0 OR w.removed) AND w.version IS NOT NULL AND NOT v_failed[w.unit];
    END IF;
    IF cardinality(p_cut_unit) > 0 THEN
        SELECT array_agg(e.ctid) INTO v_edge_row
          FROM unnest(p_cut_unit, p_cut_dependent, p_cut_upstream) w(unit, dependent, upstream)
         CROSS JOIN LATERAL (
                SELECT r.ctid FROM converge.edge r
                 WHERE r.upstream = w.upstream AND r.dependent = w.dependent OFFSET 0
               ) e
         WHERE NOT v_failed[w.unit];
    END IF;
    IF v_queue_row IS NOT NULL OR v_timer_row IS NOT NULL OR v_child_row IS NOT NULL OR v_claim_row IS NOT NULL
       OR v_edge_row IS NOT NULL
    THEN
        PERFORM converge.delete_rows(v_queue_row, v_timer_row, v_child_row, v_claim_row, v_edge_row, NULL);
    END IF;
    IF p_has[6] THEN
        INSERT INTO converge.queue (kind, kind_version, priority, due_at, id)
        SELECT w.kind, w.version, w.priority, w.due_at, w.id
          FROM unnest(p_new_unit, p_new_id, p_new_kind, p_new_queue_version, p_new_queue_priority, p_new_queue_due_at)
               w(unit, id, kind, version, priority, due_at)
         WHERE w.due_at IS NOT NULL AND NOT v_failed[w.unit]
        UNION ALL
        SELECT w.kind, w.version, w.priority, w.due_at, w.id
          FROM unnest(p_old_unit, p_old_id, p_old_kind, p_old_queue_op, p_old_removed, p_old_queue_version,
                      p_old_queue_priority, p_old_queue_due_at)
               w(unit, id, kind, op, removed, version, priority, due_at)
         WHERE w.op = 2 AND NOT w.removed AND NOT v_failed[w.unit];
    END IF;
    IF p_has[7] THEN
        INSERT INTO converge.timer (due_at, id)
        SELECT w.due_at, w.id FROM unnest(p_new_unit, p_new_id, p_new_timer_due_at) w(unit, id, due_at)
         WHERE w.due_at IS NOT NULL AND NOT v_failed[w.unit]
        UNION ALL
        SELECT w.due_at, w.id
          FROM unnest(p_old_unit, p_old_id, p_old_timer_op, p_old_removed, p_old_timer_due_at)
               w(unit, id, op, removed, due_at)
         WHERE w.op = 2 AND NOT w.removed AND NOT v_failed[w.unit];
    END IF;
    IF p_has[8] THEN
        INSERT INTO converge.child (mark, parent, id)
        SELECT w.mark, w.parent, w.id
          FROM unnest(p_new_unit, p_new_id, p_new_child_mark, p_new_child_parent) w(unit, id, mark, parent)
         WHERE w.mark IS NOT NULL AND NOT v_failed[w.unit]
        UNION ALL
        SELECT w.mark, w.parent, w.id
          FROM unnest(p_old_unit, p_old_id, p_old_child_op, p_old_removed, p_old_child_mark, p_old_child_parent)
               w(unit, id, op, removed, mark, parent)
         WHERE w.op = 2 AND NOT w.removed AND NOT v_failed[w.unit];
    END IF;
    IF v_capped AND p_has[9] THEN
        INSERT INTO converge.capped_claim (kind, kind_version, id)
        SELECT w.kind, w.version, w.id
          FROM (SELECT n.unit, n.id, n.kind, n.version
                  FROM unnest(p_new_unit, p_new_id, p_new_kind, p_new_claim_version) n(unit, id, kind, version)
                 WHERE n.version IS NOT NULL
                 UNION ALL
                SELECT o.unit, o.id, o.kind, o.version
                  FROM unnest(p_old_unit, p_old_id, p_old_kind, p_old_claim_op, p_old_removed, p_old_claim_version)
                       o(unit, id, kind, op, removed, version)
                 WHERE o.op = 2 AND NOT o.removed) w
          JOIN converge.kind_policy k ON k.kind = w.kind AND k.kind_version = w.version AND k.max_inflight > 0
         WHERE NOT v_failed[w.unit];
    END IF;
    IF cardinality(p_link_unit) > 0 THEN
        INSERT INTO converge.edge (upstream, dependent)
        SELECT w.upstream, w.dependent
          FROM unnest(p_link_unit, p_link_dependent, p_link_upstream) w(unit, dependent, upstream)
         WHERE NOT v_failed[w.unit]
            ON CONFLICT DO NOTHING;
    END IF;

    -- Level 5. A name that another transaction took since the check raises 23505: tried again as a whole.
    IF cardinality(p_free_unit) > 0 THEN
        SELECT array_agg(n.ctid) INTO v_name_row
          FROM unnest(p_free_unit, p_free_kind, p_free_name, p_free_id) w(unit, kind, name, id)
         CROSS JOIN LATERAL (
                SELECT m.ctid FROM converge.names m
                 WHERE m.kind = w.kind AND m.name = w.name AND m.id = w.id OFFSET 0
               ) n
         WHERE NOT v_failed[w.unit];
        PERFORM converge.delete_rows(NULL, NULL, NULL, NULL, NULL, v_name_row);
    END IF;
    IF cardinality(p_take_unit) > 0 THEN
        INSERT INTO converge.names (kind, name, id)
        SELECT w.kind, w.name, w.id
          FROM unnest(p_take_unit, p_take_kind, p_take_name, p_take_id) w(unit, kind, name, id)
         WHERE NOT v_failed[w.unit]
           AND (NOT v_own OR NOT EXISTS (
                SELECT 1 FROM converge.names n WHERE n.kind = w.kind AND n.name = w.name AND n.id = w.id OFFSET 0));
    END IF;
    IF cardinality(p_policy_unit) > 0 THEN
        SELECT array_agg(w.kind), array_agg(w.version) INTO v_newly_kind, v_newly_version
          FROM unnest(p_policy_unit, p_policy_kind, p_policy_version, p_policy_max) w(unit, kind, version, max_inflight)
          LEFT JOIN converge.kind_policy k ON k.kind = w.kind AND k.kind_version = w.version
         WHERE w.max_inflight > 0 AND NOT v_failed[w.unit] AND COALESCE(k.max_inflight, 0) = 0;
        INSERT INTO converge.kind_policy (kind, kind_version, max_inflight)
        SELECT w.kind, w.version, w.max_inflight
          FROM unnest(p_policy_unit, p_policy_kind, p_policy_version, p_policy_max) w(unit, kind, version, max_inflight)
         WHERE NOT v_failed[w.unit]
            ON CONFLICT (kind, kind_version) DO UPDATE SET max_inflight = EXCLUDED.max_inflight
         WHERE kind_policy.max_inflight <> EXCLUDED.max_inflight;
        -- A kind that is capped from now on gets rows for the claims that live already, this batch's included; one that
        -- is not capped any more has none.
        DELETE FROM converge.capped_claim l
         USING unnest(p_policy_kind, p_policy_version) w(kind, version)
          JOIN converge.kind_policy k ON k.kind = w.kind AND k.kind_version = w.version AND k.max_inflight = 0
         WHERE l.kind = w.kind AND l.kind_version = w.version;
        IF cardinality(v_newly_kind) > 0 THEN
            PERFORM converge.count_claims(v_newly_kind, v_newly_version);
        END IF;
    END IF;

    -- Level 6.
    IF cardinality(p_command_unit) > 0 THEN
        INSERT INTO converge.command (command_id, at)
        SELECT w.id, (extract(epoch FROM clock_timestamp()) * 1000)::bigint
          FROM unnest(p_command_unit, p_command_id) w(unit, id)
         WHERE NOT v_failed[w.unit];
    END IF;

    -- The digest of what survived; computed here to keep it out of the log lock.
    IF cardinality(conflict_unit) = 0 THEN
        event_count := cardinality(p_event_unit);
        v_digest := sha256(p_event_digests);
    ELSE
        SELECT count(*), sha256(string_agg(substr(p_event_digests, 32 * e.ord::integer - 31, 32), ''::bytea ORDER BY e.ord))
          INTO event_count, v_digest
          FROM unnest(p_event_unit) WITH ORDINALITY e(unit, ord)
         WHERE NOT v_failed[e.unit];
    END IF;
    IF event_count = 0 THEN
        RETURN;
    END IF;
    -- Parsed here for the same reason.
    v_payload := p_event_payload::json[];
    v_metadata := p_event_metadata::json[];

    -- Level 7: the log lock, held until this transaction has ended. The read of the last batch must stay a
    -- statement of its own.
    PERFORM pg_advisory_xact_lock(4850371921000);
    SELECT e.next_position, e.committed_at, e.chain, e.room INTO v_last FROM converge.end_of_log() e;
    IF EXISTS (SELECT 1 FROM converge.batch_fence f WHERE f.batch_id = p_batch_id) THEN
        RAISE EXCEPTION 'the batch was given up' USING ERRCODE = 'CV003';
    END IF;
    first_position := COALESCE(v_last.next_position, 1);
    IF first_position + event_count - 1 > COALESCE(v_last.room, 0) THEN
        RAISE EXCEPTION 'the last partition of the log is full' USING ERRCODE = 'CV001';
    END IF;
    v_now := GREATEST(clock_timestamp(), v_last.committed_at);
    committed_at_us := (extract(epoch FROM v_now) * 1000000)::bigint;

    IF cardinality(conflict_unit) = 0 THEN
        INSERT INTO converge.events (position, aggregate_type, aggregate_id, sequence, event_type, event_version,
               payload, metadata)
        SELECT first_position + e.ord - 1, e.type, e.id, e.sequence, e.name, e.version, e.payload,
               e.metadata
          FROM unnest(p_event_type, p_event_id, p_event_sequence, p_event_name, p_event_version, v_payload,
                      v_metadata) WITH ORDINALITY e(type, id, sequence, name, version, payload, metadata, ord);
    ELSE
        INSERT INTO converge.events (position, aggregate_type, aggregate_id, sequence, event_type, event_version,
               payload, metadata)
        SELECT first_position + row_number() OVER (ORDER BY e.ord) - 1, e.type, e.id, e.sequence, e.name, e.version,
               e.payload, e.metadata
          FROM unnest(p_event_unit, p_event_type, p_event_id, p_event_sequence, p_event_name, p_event_version,
                      v_payload, v_metadata)
               WITH ORDINALITY e(unit, type, id, sequence, name, version, payload, metadata, ord)
         WHERE NOT v_failed[e.unit];
    END IF;
    INSERT INTO converge.append_batch (first_position, count, batch_id, committed_at, digest, chain)
    VALUES (first_position, event_count, p_batch_id, v_now, v_digest,
            sha256(COALESCE(v_last.chain, decode(repeat('00', 32), 'hex')) || v_digest || int8send(first_position)
                   || int8send(event_count) || int8send(committed_at_us)));
    IF COALESCE(current_setting('converge.notify', true), '') <> 'off' THEN
        PERFORM pg_notify('converge_log', '');
    END IF;
END $$;
