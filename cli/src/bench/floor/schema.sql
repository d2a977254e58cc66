-- The floor's tables, in a schema of their own. Takes no lock that anybody waits for; returns nothing.
--
-- They are frozen: they stay as they are whatever the product's tables become. An index or column that the product adds
-- must cost it part of its ratio to the floor, and not lower the floor with it.
DROP SCHEMA IF EXISTS bench_floor CASCADE;
CREATE SCHEMA bench_floor;

CREATE TABLE bench_floor.events (
    position       bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    aggregate_type text   NOT NULL,
    aggregate_id   uuid   NOT NULL,
    sequence       bigint NOT NULL,
    event_type     text   NOT NULL,
    event_version  text   NOT NULL,
    payload        json   NOT NULL,
    metadata       json   NOT NULL
);
CREATE INDEX events_aggregate ON bench_floor.events (aggregate_id, sequence);

CREATE TABLE bench_floor.head (
    id         uuid   PRIMARY KEY,
    kind       text   NOT NULL,
    name       text   NOT NULL,
    parent     uuid,
    sequence   bigint NOT NULL,
    generation bigint NOT NULL,
    synced_gen bigint NOT NULL,
    epoch      bigint NOT NULL,
    phase      text   NOT NULL,
    state      jsonb  NOT NULL,
    UNIQUE (kind, name)
) WITH (fillfactor = 70);
CREATE INDEX head_parent ON bench_floor.head (parent);

CREATE TABLE bench_floor.queue (
    kind         text        NOT NULL,
    kind_version smallint    NOT NULL,
    priority     smallint    NOT NULL,
    due_at       timestamptz NOT NULL,
    id           uuid        NOT NULL
);
CREATE INDEX queue_due ON bench_floor.queue (kind, kind_version, priority, due_at, id);
