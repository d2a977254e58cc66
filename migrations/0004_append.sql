-- The one way into the log: `append` writes a whole batch in a single server call, or nothing.
--
-- Takes arrays, one per column. `*_unit` is a 1-based index of the unit a row belongs to; a unit that loses a
-- compare-and-set, a guard or a name is left out of the batch and reported, the others are written.
--
-- LOCK ORDER, and why nothing deadlocks. Every append takes its locks level by level:
--   1. policy rows, by (kind, version);
--   2. existing heads, written ones FOR UPDATE and guarded ones FOR SHARE, by id, each once;
--   3. index entries of new heads, by (kind, name, id);
--   4. rows of the narrow tables and the head updates: all belong to one head locked in 2 or made in 3, so
--      nobody else can hold them;
--   5. names, by (kind, name); then policy rows (locked in 1, or new and owned by a head made in 3);
--   6. command ids, by id;
--   7. the log lock.
-- Inside a level the order is total and each lock is taken once, in its strongest mode, so two appends cannot
-- wait for each other inside it; and nobody waits at a level while another waits for him at a lower one.
-- The one unsorted wait is for a name that another batch is freeing: the taker has *checked* the name as free,
-- so the check came before the present holder committed, which came before the freeing batch could lock that
-- holder's head, which came before that batch's own check. Around a cycle of such waits every check would
-- precede itself, so there is no cycle.
--
-- WHY GUARDS SEE EVERY COMMITTED FACT. Under READ COMMITTED each statement of a volatile function has a snapshot
-- of its own. Guards are checked in a statement that begins after all locks of level 2 are held. A transaction
-- that changed a guarded fact held a lock on a head that is locked here (the guarded head itself, or the owner
-- whose rows it touches). Either it committed before the lock was granted, and the new snapshot contains it; or
-- it waits behind this one, and finds the heads moved. Checking inside the statement that locks would use a
-- snapshot from before the wait. Absent heads cannot be locked, but ids of resources are never used twice, so
-- the absence of a deleted one is final.
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
-- batch up before it reached the log lock.
CREATE FUNCTION converge.append(
    p_batch_id uuid,
    p_units integer,
    -- level 2: all heads to lock, sorted by id and cut into runs of one mode each
    p_lock_id uuid[], p_run_end integer[], p_run_exclusive boolean[],
    -- level 1: policy rows, sorted by (kind, version)
    p_cap_kind text[], p_cap_version smallint[],
    -- heads, sorted by (kind, name, id); ops: 0 leave, 1 delete, 2 set
    p_head_unit integer[], p_head_id uuid[], p_head_type text[], p_head_expected bigint[], p_head_sequence bigint[],
    p_head_kind text[], p_head_version smallint[], p_head_name text[], p_head_parent uuid[],
    p_head_phase smallint[], p_head_standing smallint[], p_head_subtree smallint[], p_head_pass uuid[],
    p_head_outward bigint[], p_head_state text[], p_head_removed boolean[],
    p_queue_op smallint[], p_queue_version smallint[], p_queue_priority smallint[], p_queue_due_at bigint[],
    p_timer_op smallint[], p_timer_due_at bigint[],
    p_child_op smallint[], p_child_mark smallint[], p_child_parent uuid[],
    p_claim_op smallint[], p_claim_version smallint[], p_claim_session uuid[],
    -- which of the optional parts have rows at all: queue, timer, child, claim, insert, update, remove
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
    -- events, in the order of their positions
    p_event_unit integer[], p_event_type text[], p_event_id uuid[], p_event_sequence bigint[],
    p_event_name text[], p_event_version text[], p_event_payload text[], p_event_metadata text[],
    p_event_digest bytea[],
    OUT first_position bigint, OUT event_count integer, OUT committed_at_us bigint,
    OUT conflict_unit integer[], OUT conflict_code smallint[]
)
LANGUAGE plpgsql VOLATILE
-- Every statement is a walk over small arrays with index probes into large tables. Plans are made once, and
-- never from statistics taken when a table was empty.
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off
SET search_path = pg_catalog
AS $$
DECLARE
    v_failed     boolean[] := array_fill(false, ARRAY[p_units]);
    v_start      integer := 1;
    v_left       bigint[];
    v_left_saved bigint[];
    v_unit       integer := 0;
    v_digest     bytea;
    v_last       record;
    v_room       bigint;
    v_now        timestamptz;
    i            integer;
BEGIN
    IF current_setting('transaction_isolation') <> 'read committed' THEN
        RAISE EXCEPTION 'append runs under READ COMMITTED only' USING ERRCODE = 'CV002';
    END IF;
    conflict_unit := '{}';
    conflict_code := '{}';

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

    -- The checks: a new statement, after the locks. The lowest code of a unit wins: a command that was executed
    -- before says so, and a name only counts as taken for a decision that is otherwise still right.
    SELECT array_agg(c.unit ORDER BY c.unit), array_agg(c.code ORDER BY c.unit) INTO conflict_unit, conflict_code
      FROM (
        SELECT f.unit, min(f.code)::smallint AS code FROM (
            SELECT c.unit, 1 AS code
              FROM unnest(p_command_unit, p_command_id) c(unit, id)
              JOIN converge.command x ON x.command_id = c.id
            UNION ALL
            SELECT w.unit, 2
              FROM unnest(p_head_unit, p_head_id, p_head_expected) w(unit, id, expected)
              LEFT JOIN converge.head h ON h.id = w.id
             WHERE COALESCE(h.sequence, 0) <> w.expected
            UNION ALL
            SELECT g.unit, 3
              FROM unnest(p_guard_unit, p_guard_code, p_guard_id, p_guard_sequence, p_guard_pass, p_guard_standing)
                   g(unit, code, id, sequence, pass, standing)
              LEFT JOIN converge.head h ON h.id = g.id
             WHERE NOT CASE g.code
                WHEN 1 THEN COALESCE(h.sequence, 0) = g.sequence                                  -- unmoved
                WHEN 2 THEN COALESCE(h.phase = 5, false)                                          -- upstream ready
                WHEN 3 THEN h.id IS NOT NULL AND h.phase IS DISTINCT FROM 0 AND h.pass_id IS NULL -- ancestor quiet
                WHEN 4 THEN h.id IS NOT NULL AND h.phase IS DISTINCT FROM 0
                            AND COALESCE(h.pass_id = g.pass, false)                               -- in pass
                WHEN 5 THEN COALESCE(h.subtree >= g.standing, false)                              -- subtree at least
                WHEN 6 THEN NOT EXISTS (SELECT 1 FROM converge.child c WHERE c.mark = 1 AND c.parent = g.id)
                WHEN 7 THEN NOT EXISTS (SELECT 1 FROM converge.child c WHERE c.mark = 1 AND c.parent = g.id)
                        AND NOT EXISTS (SELECT 1 FROM converge.child c WHERE c.mark = 2 AND c.parent = g.id)
                WHEN 8 THEN NOT EXISTS (SELECT 1 FROM converge.edge e WHERE e.upstream = g.id)    -- no dependents
                WHEN 9 THEN NOT EXISTS (SELECT 1 FROM converge.head c WHERE c.parent = g.id)      -- no children
                ELSE false END
            UNION ALL
            SELECT t.unit, 4
              FROM unnest(p_take_unit, p_take_kind, p_take_name, p_take_id) t(unit, kind, name, id)
              JOIN converge.names n ON n.kind = t.kind AND n.name = t.name
             WHERE n.id <> t.id
               AND NOT EXISTS (SELECT 1 FROM unnest(p_free_unit, p_free_kind, p_free_name) f(unit, kind, name)
                                WHERE f.unit = t.unit AND f.kind = t.kind AND f.name = t.name)
        ) f GROUP BY f.unit
      ) c;
    conflict_unit := COALESCE(conflict_unit, '{}');
    conflict_code := COALESCE(conflict_code, '{}');
    FOR i IN 1 .. cardinality(conflict_unit) LOOP
        v_failed[conflict_unit[i]] := true;
    END LOOP;

    -- Caps. The policy row is locked, so no other claim of the kind is in flight: the live rows, counted in this
    -- new statement, and the claims that survive here are all there are. A claim that ends in this same batch still
    -- counts; the cap is then reached a batch later.
    IF cardinality(p_capped_unit) > 0 THEN
        SELECT array_agg(CASE WHEN COALESCE(k.max_inflight, 0) = 0 THEN 9223372036854775807
               ELSE k.max_inflight - (SELECT count(*) FROM converge.claim l
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

    -- Level 3. A concurrent insert of the same id raises 23505: the whole call is then tried again.
    IF p_has[5] THEN
        INSERT INTO converge.head (id, aggregate_type, kind, kind_version, name, parent, sequence, phase, standing, subtree,
               pass_id, outward, created_batch, batch_id, queue_version, queue_priority, queue_due_at, timer_due_at,
               child_mark, child_parent, claim_version, claim_session, state)
        SELECT w.id, w.type, w.kind, w.version, w.name, w.parent, w.sequence, w.phase, w.standing, w.subtree,
               w.pass, w.outward, p_batch_id, p_batch_id, w.queue_version, w.queue_priority, w.queue_due_at,
               w.timer_due_at, w.child_mark, w.child_parent, w.claim_version, w.claim_session, w.state::json
          FROM unnest(p_head_unit, p_head_id, p_head_type, p_head_expected, p_head_sequence, p_head_kind,
                      p_head_version, p_head_name, p_head_parent, p_head_phase, p_head_standing, p_head_subtree,
                      p_head_pass, p_head_outward, p_head_state, p_head_removed, p_queue_version, p_queue_priority,
                      p_queue_due_at, p_timer_due_at, p_child_mark, p_child_parent, p_claim_version, p_claim_session)
               w(unit, id, type, expected, sequence, kind, version, name, parent, phase, standing, subtree, pass,
                 outward, state, removed, queue_version, queue_priority, queue_due_at, timer_due_at, child_mark,
                 child_parent, claim_version, claim_session)
         WHERE w.expected = 0 AND NOT w.removed AND NOT v_failed[w.unit];
    END IF;

    -- Level 4: narrow rows. The old row is found by the key its head remembers; an unchanged row is left alone.
    IF p_has[1] THEN
        DELETE FROM converge.queue q
         USING unnest(p_head_unit, p_head_id, p_head_expected, p_queue_op, p_head_removed, p_queue_version,
                      p_queue_priority, p_queue_due_at)
               w(unit, id, expected, op, removed, version, priority, due_at)
          JOIN converge.head h ON h.id = w.id
         WHERE (w.op <> 0 OR w.removed) AND w.expected <> 0 AND NOT v_failed[w.unit] AND h.queue_due_at IS NOT NULL
           AND (w.removed OR (w.version, w.priority, w.due_at)
                IS DISTINCT FROM (h.queue_version, h.queue_priority, h.queue_due_at))
           AND q.kind = h.kind AND q.kind_version = h.queue_version AND q.priority = h.queue_priority
           AND q.due_at = h.queue_due_at AND q.id = h.id;
        INSERT INTO converge.queue (kind, kind_version, priority, due_at, id)
        SELECT w.kind, w.version, w.priority, w.due_at, w.id
          FROM unnest(p_head_unit, p_head_id, p_head_expected, p_head_kind, p_queue_op, p_head_removed,
                      p_queue_version, p_queue_priority, p_queue_due_at)
               w(unit, id, expected, kind, op, removed, version, priority, due_at)
          LEFT JOIN converge.head h ON h.id = w.id
         WHERE w.op = 2 AND NOT w.removed AND NOT v_failed[w.unit]
           AND (w.expected = 0 OR (w.version, w.priority, w.due_at)
                IS DISTINCT FROM (h.queue_version, h.queue_priority, h.queue_due_at));
    END IF;
    IF p_has[2] THEN
        DELETE FROM converge.timer t
         USING unnest(p_head_unit, p_head_id, p_head_expected, p_timer_op, p_head_removed, p_timer_due_at)
               w(unit, id, expected, op, removed, due_at)
          JOIN converge.head h ON h.id = w.id
         WHERE (w.op <> 0 OR w.removed) AND w.expected <> 0 AND NOT v_failed[w.unit]
           AND (w.removed OR w.due_at IS DISTINCT FROM h.timer_due_at)
           AND t.due_at = h.timer_due_at AND t.id = h.id;
        INSERT INTO converge.timer (due_at, id)
        SELECT w.due_at, w.id
          FROM unnest(p_head_unit, p_head_id, p_head_expected, p_timer_op, p_head_removed, p_timer_due_at)
               w(unit, id, expected, op, removed, due_at)
          LEFT JOIN converge.head h ON h.id = w.id
         WHERE w.op = 2 AND NOT w.removed AND NOT v_failed[w.unit]
           AND (w.expected = 0 OR w.due_at IS DISTINCT FROM h.timer_due_at);
    END IF;
    IF p_has[3] THEN
        DELETE FROM converge.child c
         USING unnest(p_head_unit, p_head_id, p_head_expected, p_child_op, p_head_removed, p_child_mark, p_child_parent)
               w(unit, id, expected, op, removed, mark, parent)
          JOIN converge.head h ON h.id = w.id
         WHERE (w.op <> 0 OR w.removed) AND w.expected <> 0 AND NOT v_failed[w.unit]
           AND (w.removed OR (w.mark, w.parent) IS DISTINCT FROM (h.child_mark, h.child_parent))
           AND c.mark = h.child_mark AND c.parent = h.child_parent AND c.id = h.id;
        INSERT INTO converge.child (mark, parent, id)
        SELECT w.mark, w.parent, w.id
          FROM unnest(p_head_unit, p_head_id, p_head_expected, p_child_op, p_head_removed, p_child_mark, p_child_parent)
               w(unit, id, expected, op, removed, mark, parent)
          LEFT JOIN converge.head h ON h.id = w.id
         WHERE w.op = 2 AND NOT w.removed AND NOT v_failed[w.unit]
           AND (w.expected = 0 OR (w.mark, w.parent) IS DISTINCT FROM (h.child_mark, h.child_parent));
    END IF;
    IF p_has[4] THEN
        DELETE FROM converge.claim l
         USING unnest(p_head_unit, p_head_id, p_head_expected, p_claim_op, p_head_removed, p_claim_version,
                      p_claim_session)
               w(unit, id, expected, op, removed, version, session)
          JOIN converge.head h ON h.id = w.id
         WHERE (w.op <> 0 OR w.removed) AND w.expected <> 0 AND NOT v_failed[w.unit]
           AND (w.removed OR (w.version, w.session) IS DISTINCT FROM (h.claim_version, h.claim_session))
           AND l.kind = h.kind AND l.kind_version = h.claim_version AND l.session = h.claim_session AND l.id = h.id;
        INSERT INTO converge.claim (kind, kind_version, session, id)
        SELECT w.kind, w.version, w.session, w.id
          FROM unnest(p_head_unit, p_head_id, p_head_expected, p_head_kind, p_claim_op, p_head_removed,
                      p_claim_version, p_claim_session)
               w(unit, id, expected, kind, op, removed, version, session)
          LEFT JOIN converge.head h ON h.id = w.id
         WHERE w.op = 2 AND NOT w.removed AND NOT v_failed[w.unit]
           AND (w.expected = 0 OR (w.version, w.session) IS DISTINCT FROM (h.claim_version, h.claim_session));
    END IF;
    IF p_has[6] THEN
        UPDATE converge.head h
           SET kind_version = w.version, sequence = w.sequence, phase = w.phase, standing = w.standing,
               subtree = w.subtree, pass_id = w.pass, outward = w.outward, batch_id = p_batch_id,
               state = w.state::json,
               queue_version  = CASE w.queue_op WHEN 0 THEN h.queue_version  ELSE w.queue_version  END,
               queue_priority = CASE w.queue_op WHEN 0 THEN h.queue_priority ELSE w.queue_priority END,
               queue_due_at   = CASE w.queue_op WHEN 0 THEN h.queue_due_at   ELSE w.queue_due_at   END,
               timer_due_at   = CASE w.timer_op WHEN 0 THEN h.timer_due_at   ELSE w.timer_due_at   END,
               child_mark     = CASE w.child_op WHEN 0 THEN h.child_mark     ELSE w.child_mark     END,
               child_parent   = CASE w.child_op WHEN 0 THEN h.child_parent   ELSE w.child_parent   END,
               claim_version  = CASE w.claim_op WHEN 0 THEN h.claim_version  ELSE w.claim_version  END,
               claim_session  = CASE w.claim_op WHEN 0 THEN h.claim_session  ELSE w.claim_session  END
          FROM unnest(p_head_unit, p_head_id, p_head_expected, p_head_sequence, p_head_version, p_head_phase,
                      p_head_standing, p_head_subtree, p_head_pass, p_head_outward, p_head_state, p_head_removed,
                      p_queue_op, p_queue_version, p_queue_priority, p_queue_due_at, p_timer_op, p_timer_due_at,
                      p_child_op, p_child_mark, p_child_parent, p_claim_op, p_claim_version, p_claim_session)
               w(unit, id, expected, sequence, version, phase, standing, subtree, pass, outward, state, removed,
                 queue_op, queue_version, queue_priority, queue_due_at, timer_op, timer_due_at, child_op, child_mark,
                 child_parent, claim_op, claim_version, claim_session)
         WHERE h.id = w.id AND w.expected <> 0 AND NOT w.removed AND NOT v_failed[w.unit];
    END IF;
    IF p_has[7] THEN
        DELETE FROM converge.head h
         USING unnest(p_head_unit, p_head_id, p_head_removed) w(unit, id, removed)
         WHERE h.id = w.id AND w.removed AND NOT v_failed[w.unit];
    END IF;
    IF cardinality(p_cut_unit) > 0 THEN
        DELETE FROM converge.edge e
         USING unnest(p_cut_unit, p_cut_dependent, p_cut_upstream) w(unit, dependent, upstream)
         WHERE e.upstream = w.upstream AND e.dependent = w.dependent AND NOT v_failed[w.unit];
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
        DELETE FROM converge.names n
         USING unnest(p_free_unit, p_free_kind, p_free_name, p_free_id) w(unit, kind, name, id)
         WHERE n.kind = w.kind AND n.name = w.name AND n.id = w.id AND NOT v_failed[w.unit];
    END IF;
    IF cardinality(p_take_unit) > 0 THEN
        INSERT INTO converge.names (kind, name, id)
        SELECT w.kind, w.name, w.id
          FROM unnest(p_take_unit, p_take_kind, p_take_name, p_take_id) w(unit, kind, name, id)
         WHERE NOT v_failed[w.unit]
           AND NOT EXISTS (SELECT 1 FROM converge.names n WHERE n.kind = w.kind AND n.name = w.name AND n.id = w.id);
    END IF;
    IF cardinality(p_policy_unit) > 0 THEN
        INSERT INTO converge.kind_policy (kind, kind_version, max_inflight)
        SELECT w.kind, w.version, w.max_inflight
          FROM unnest(p_policy_unit, p_policy_kind, p_policy_version, p_policy_max) w(unit, kind, version, max_inflight)
         WHERE NOT v_failed[w.unit]
            ON CONFLICT (kind, kind_version) DO UPDATE SET max_inflight = EXCLUDED.max_inflight
         WHERE kind_policy.max_inflight <> EXCLUDED.max_inflight;
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
        SELECT sha256(string_agg(e.digest, ''::bytea ORDER BY e.ord)) INTO v_digest
          FROM unnest(p_event_digest) WITH ORDINALITY e(digest, ord);
    ELSE
        SELECT count(*), sha256(string_agg(e.digest, ''::bytea ORDER BY e.ord)) INTO event_count, v_digest
          FROM unnest(p_event_unit, p_event_digest) WITH ORDINALITY e(unit, digest, ord)
         WHERE NOT v_failed[e.unit];
    END IF;
    IF event_count = 0 THEN
        RETURN;
    END IF;

    -- Level 7: the log lock, held until this transaction has ended. The read of the last batch must stay a
    -- statement of its own.
    PERFORM pg_advisory_xact_lock(4850371921000);
    SELECT b.first_position + b.count AS next_position, b.committed_at, b.chain INTO v_last
      FROM converge.append_batch b ORDER BY b.first_position DESC LIMIT 1;
    SELECT max(p.last_position) INTO v_room FROM converge.event_partition p;
    IF EXISTS (SELECT 1 FROM converge.batch_fence f WHERE f.batch_id = p_batch_id) THEN
        RAISE EXCEPTION 'the batch was given up' USING ERRCODE = 'CV003';
    END IF;
    first_position := COALESCE(v_last.next_position, 1);
    IF first_position + event_count - 1 > COALESCE(v_room, 0) THEN
        RAISE EXCEPTION 'the last partition of the log is full' USING ERRCODE = 'CV001';
    END IF;
    v_now := GREATEST(clock_timestamp(), v_last.committed_at);
    committed_at_us := (extract(epoch FROM v_now) * 1000000)::bigint;

    IF cardinality(conflict_unit) = 0 THEN
        INSERT INTO converge.events (position, aggregate_type, aggregate_id, sequence, event_type, event_version,
               payload, metadata)
        SELECT first_position + e.ord - 1, e.type, e.id, e.sequence, e.name, e.version, e.payload::json,
               e.metadata::json
          FROM unnest(p_event_type, p_event_id, p_event_sequence, p_event_name, p_event_version, p_event_payload,
                      p_event_metadata) WITH ORDINALITY e(type, id, sequence, name, version, payload, metadata, ord);
    ELSE
        INSERT INTO converge.events (position, aggregate_type, aggregate_id, sequence, event_type, event_version,
               payload, metadata)
        SELECT first_position + row_number() OVER (ORDER BY e.ord) - 1, e.type, e.id, e.sequence, e.name, e.version,
               e.payload::json, e.metadata::json
          FROM unnest(p_event_unit, p_event_type, p_event_id, p_event_sequence, p_event_name, p_event_version,
                      p_event_payload, p_event_metadata)
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

