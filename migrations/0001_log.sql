-- The log: events in one dense global order, and the batches that gave them their positions.
--
-- Why `append_batch` exists: its last row *is* the head of the log. It is only ever inserted into. A counter
-- row that is updated in place would collect dead versions under any old snapshot and slow down every append.
--
-- Locks: plain DDL, run once under the migrator's advisory lock.

CREATE SCHEMA IF NOT EXISTS converge;

-- `payload` and `metadata` are json, not jsonb: their bytes stay as they were hashed, and they are cheaper to store.
CREATE TABLE converge.events (
    position       bigint NOT NULL,
    aggregate_type text   NOT NULL,
    aggregate_id   uuid   NOT NULL,
    sequence       bigint NOT NULL,
    event_type     text   NOT NULL,
    event_version  text   NOT NULL,
    payload        json   NOT NULL,
    metadata       json   NOT NULL,
    PRIMARY KEY (position)
) PARTITION BY RANGE (position);

-- Which ranges are attached; `append` looks here, so that running out of room is a named state and not a
-- data error of whatever batch came last.
CREATE TABLE converge.event_partition (
    first_position bigint PRIMARY KEY,
    last_position  bigint NOT NULL UNIQUE,
    CHECK (first_position <= last_position)
);

-- Builds the partition after the last one and attaches it, if fewer than `ahead` positions are left.
-- Returns the last position that has a partition.
--
-- Locks: an advisory transaction lock, so that two processes do not build the same range. The new table is
-- created on its own first; ATTACH then takes SHARE UPDATE EXCLUSIVE on the parent only, which reads and
-- inserts do not notice. There is no default partition, whose rows every ATTACH would have to scan.
-- A unique key cannot span partitions: (aggregate_id, sequence) is unique per leaf, and the compare-and-set
-- of heads is what guards it across leaves.
CREATE FUNCTION converge.ensure_partition(ahead bigint, size bigint) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    v_used  bigint;
    v_last  bigint;
    v_first bigint;
    v_leaf  text;
BEGIN
    PERFORM pg_advisory_xact_lock(4850371921001);
    SELECT COALESCE(max(last_position), 0) INTO v_last FROM converge.event_partition;
    SELECT COALESCE(max(first_position + count - 1), 0) INTO v_used
      FROM (SELECT first_position, count FROM converge.append_batch ORDER BY first_position DESC LIMIT 1) b;
    WHILE v_last - v_used < ahead LOOP
        v_first := v_last + 1;
        v_last := v_last + size;
        v_leaf := 'events_' || lpad(v_first::text, 15, '0');
        EXECUTE format(
            'CREATE TABLE converge.%I (LIKE converge.events INCLUDING DEFAULTS INCLUDING CONSTRAINTS)', v_leaf);
        EXECUTE format('ALTER TABLE converge.%I ADD PRIMARY KEY (position)', v_leaf);
        EXECUTE format('CREATE UNIQUE INDEX ON converge.%I (aggregate_id, sequence)', v_leaf);
        EXECUTE format(
            'ALTER TABLE converge.events ATTACH PARTITION converge.%I FOR VALUES FROM (%s) TO (%s)',
            v_leaf, v_first, v_last + 1);
        INSERT INTO converge.event_partition VALUES (v_first, v_last);
    END LOOP;
    RETURN v_last;
END $$;

CREATE TABLE converge.append_batch (
    first_position bigint      PRIMARY KEY,
    count          integer     NOT NULL CHECK (count > 0),
    batch_id       uuid        NOT NULL UNIQUE,
    -- Never earlier than the batch before, whatever the host's clock does.
    committed_at   timestamptz NOT NULL,
    -- SHA-256 over the digests of the batch's events.
    digest         bytea       NOT NULL,
    -- SHA-256 over the previous chain hash, the digest, first_position, count and committed_at.
    chain          bytea       NOT NULL
);

SELECT converge.ensure_partition(1, 10000000);

-- The log as postgres-es reads it (`with_tables('converge.events_es', …)`); read only.
CREATE VIEW converge.events_es AS
SELECT aggregate_type, aggregate_id::text AS aggregate_id, sequence, event_type, event_version, payload, metadata
  FROM converge.events;
