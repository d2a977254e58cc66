-- The inline projections: the narrow tables that commands and claims need at once, written in the append call.
--
-- Everything here is a function of the log and can be rebuilt from it, `member`, `command` and `staging` aside.
-- There are no foreign keys: each would take row locks outside the one lock order.
--
-- Locks: plain DDL, run once under the migrator's advisory lock.

-- One row per live aggregate. No index covers or predicates on a column that changes, so every update can be HOT. That it
-- is takes room on the page: a batch updates all rows of a page at once, so half of it is left free for their next
-- versions. (Measured on batches of 500: every update HOT, against half of them with a third of the page free.)
-- The `queue_*`, `timer_*`, `child_*` and `claim_*` columns repeat the key of the aggregate's row in the narrow
-- tables below: a row there is found by its full key from its head, and those tables need no second index by id.
CREATE TABLE converge.head (
    id             uuid     PRIMARY KEY,
    aggregate_type text     NOT NULL,
    kind           text     NOT NULL,
    kind_version   smallint NOT NULL,
    name           text     NOT NULL,
    parent         uuid,
    sequence       bigint   NOT NULL,
    phase          smallint,
    standing       smallint,
    subtree        smallint,
    pass_id        uuid,
    outward        bigint   NOT NULL,
    -- The first and the last batch that wrote it; `append_batch` maps them to positions, which bound the
    -- partitions a load of the stream has to look into.
    created_batch  uuid     NOT NULL,
    batch_id       uuid     NOT NULL,
    queue_version  smallint,
    queue_priority smallint,
    queue_due_at   bigint,
    timer_due_at   bigint,
    child_mark     smallint,
    child_parent   uuid,
    claim_version  smallint,
    claim_session  uuid,
    state          json     NOT NULL
) WITH (fillfactor = 50);

-- (parent, id), not (parent): children are walked by id in chunks, without a sort. Neither column changes.
CREATE INDEX head_parent ON converge.head (parent, id) WHERE parent IS NOT NULL;
-- The aggregates that are not resources: few, loaded whole when a process starts.
CREATE INDEX head_other ON converge.head (aggregate_type) WHERE aggregate_type <> 'resource';

CREATE TABLE converge.names (
    kind text NOT NULL,
    name text NOT NULL,
    id   uuid NOT NULL,
    PRIMARY KEY (kind, name)
);

CREATE TABLE converge.edge (
    upstream  uuid NOT NULL,
    dependent uuid NOT NULL,
    PRIMARY KEY (upstream, dependent)
);

-- The children an owner must look at (nil parent: top-level). With the mark first, the witness of each mark is
-- one probe, and the walk over all rows by (parent, id) is a merge of three index scans.
CREATE TABLE converge.child (
    mark   smallint NOT NULL,
    parent uuid     NOT NULL,
    id     uuid     NOT NULL,
    PRIMARY KEY (mark, parent, id)
);

-- Times are milliseconds since the epoch on the database's clock.
CREATE TABLE converge.queue (
    kind         text     NOT NULL,
    kind_version smallint NOT NULL,
    priority     smallint NOT NULL,
    due_at       bigint   NOT NULL,
    id           uuid     NOT NULL,
    PRIMARY KEY (kind, kind_version, priority, due_at, id)
);

CREATE TABLE converge.timer (
    due_at bigint NOT NULL,
    id     uuid   NOT NULL,
    PRIMARY KEY (due_at, id)
);

-- Live claims. The key serves the count of a capped kind; sessions are found by skipping through it.
CREATE TABLE converge.claim (
    kind         text     NOT NULL,
    kind_version smallint NOT NULL,
    session      uuid     NOT NULL,
    id           uuid     NOT NULL,
    PRIMARY KEY (kind, kind_version, session, id)
);

CREATE TABLE converge.kind_policy (
    kind         text     NOT NULL,
    kind_version smallint NOT NULL,
    max_inflight integer  NOT NULL,
    PRIMARY KEY (kind, kind_version)
);

-- Executed command ids, kept for a window.
CREATE TABLE converge.command (
    command_id uuid   PRIMARY KEY,
    at         bigint NOT NULL
);
CREATE INDEX command_at ON converge.command (at);

CREATE TABLE converge.member (
    session        uuid        PRIMARY KEY,
    role           text        NOT NULL,
    host           text        NOT NULL,
    broker_address text        NOT NULL,
    -- The kind versions (`vpc/v1`) that a ready worker connected to it serves, as of its last beat.
    served         text[]      NOT NULL,
    beat_at        timestamptz NOT NULL
);

-- Composer output on its way into the log. Unlogged: a database crash empties it, and it is obtained again by
-- composing again.
CREATE UNLOGGED TABLE converge.staging (
    root     uuid     NOT NULL,
    claim_id uuid     NOT NULL,
    ordinal  bigint   NOT NULL,
    part     smallint NOT NULL,
    payload  text     NOT NULL,
    PRIMARY KEY (root, claim_id, ordinal)
);

-- Queue-like tables are mostly dead rows by nature: vacuum them by count, not by share.
ALTER TABLE converge.queue SET (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 20000);
ALTER TABLE converge.timer SET (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 20000);
ALTER TABLE converge.child SET (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 20000);
ALTER TABLE converge.claim SET (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 20000);
