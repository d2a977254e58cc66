-- Catch-up read models: what people list, count and search.
--
-- They live in a schema of their own because nothing on the write path may read or lock them: dropping the
-- whole schema loses no fact, the log rebuilds it. Text that takes part in an order is COLLATE "C", so that
-- a cursor means the same on every server, whatever locale its cluster was made with.

CREATE SCHEMA projections;

-- How far each projection has come. Moved by compare-and-set on (epoch, position), in the transaction that
-- writes the rows: a batch is visible exactly when it is counted. Fillfactor leaves room for HOT updates.
CREATE TABLE projections.checkpoint (
    name       text   PRIMARY KEY,
    version    int    NOT NULL,
    position   bigint NOT NULL CHECK (position >= 0),
    epoch      bigint NOT NULL CHECK (epoch > 0),
    updated_at timestamptz NOT NULL DEFAULT now()
) WITH (fillfactor = 50);

-- One row per live resource. `path` orders a tree depth-first (see resource_list/path.rs); it is cut at a
-- length that an index entry can hold, `depth` and `id` break the ties that the cut leaves.
CREATE TABLE projections.resource_list (
    id               uuid     PRIMARY KEY,
    kind             text     COLLATE "C" NOT NULL,
    kind_version     smallint NOT NULL,
    name             text     COLLATE "C" NOT NULL,
    labels           jsonb    NOT NULL,
    phase            text     COLLATE "C" NOT NULL,
    parent           uuid,
    root             uuid     NOT NULL,
    depth            int      NOT NULL,
    ancestors        uuid[]   NOT NULL,
    path             text     COLLATE "C" NOT NULL,
    created_at       timestamptz NOT NULL,
    updated_position bigint   NOT NULL,
    state            json     NOT NULL
) WITH (fillfactor = 80);

-- One index per way into the list, each ending in the one order of every list: (kind, name, id).
CREATE INDEX resource_list_by_name   ON projections.resource_list (kind, name, id);
CREATE INDEX resource_list_by_phase  ON projections.resource_list (phase, kind, name, id);
CREATE INDEX resource_list_by_parent ON projections.resource_list (parent, kind, name, id) WHERE parent IS NOT NULL;
CREATE INDEX resource_list_by_root   ON projections.resource_list (root, kind, name, id);
CREATE INDEX resource_list_by_path   ON projections.resource_list (root, path, depth, id);
CREATE INDEX resource_list_by_label  ON projections.resource_list USING gin (labels jsonb_path_ops);
-- Counting one tree by kind and phase.
CREATE INDEX resource_list_tally     ON projections.resource_list (root, kind, phase);

-- Who an id is or was. Never deleted from: events of a resource outlive it and still want its name, and a
-- name leads to every resource that ever bore it.
CREATE TABLE projections.resource_identity (
    id               uuid   PRIMARY KEY,
    kind             text   COLLATE "C" NOT NULL,
    name             text   COLLATE "C" NOT NULL,
    ancestors        uuid[] NOT NULL,
    created_position bigint NOT NULL
);
CREATE INDEX resource_identity_by_name ON projections.resource_identity (kind, name, created_position DESC);

-- Phase counts of the whole fleet, kept by difference so that reading them costs the same at any size.
CREATE TABLE projections.phase_count (
    kind  text   COLLATE "C" NOT NULL,
    phase text   COLLATE "C" NOT NULL,
    count bigint NOT NULL CHECK (count >= 0),
    PRIMARY KEY (kind, phase)
) WITH (fillfactor = 50);
