-- The resource list, split into what never changes and what does.
--
-- A row that carries the ways into the list (name, owner, root, path, labels) is written once: it holds nothing
-- that changes but labels, which seldom do. Phases live in a narrow table of their own, so that a change of phase
-- rewrites two small index entries and not all of them. The state is not copied any more: a page reads it from
-- the heads. Reasons and measurements: docs/adr/0006-split-resource-list.md.
--
-- All of this is a function of the log. The old tables go, and the checkpoint goes back to 0 in the same
-- transaction, so that whoever reads between this and the end of the rebuild sees a list that says how far it
-- is. The epoch rises and the version is the new one: a runner of an older build is fenced, or keeps its hands off.
--
-- Locks: ACCESS EXCLUSIVE on the dropped tables, which keeps readers of the list out until the commit.

UPDATE projections.checkpoint
SET position = 0, epoch = epoch + 1, version = 2, updated_at = now()
WHERE name = 'resource_list';

DROP TABLE projections.resource_list;
DROP TABLE projections.resource_identity;
DROP TABLE projections.phase_count;

-- One row per live resource: who it is and where it stands. `path` orders a tree depth-first (see
-- resource_list/path.rs); it is cut at a length that an index entry can hold, `depth` and `id` break the ties
-- that the cut leaves. `labels` is null where there are none.
CREATE TABLE projections.resource_list (
    id               uuid   PRIMARY KEY,
    kind             text   COLLATE "C" NOT NULL,
    name             text   COLLATE "C" NOT NULL,
    parent           uuid,
    root             uuid   NOT NULL,
    depth            int    NOT NULL,
    ancestors        uuid[] NOT NULL,
    path             text   COLLATE "C" NOT NULL,
    labels           jsonb,
    created_position bigint NOT NULL
);

-- One index per way into the list, each ending in the one order of every list: (kind, name, id). A root is found
-- by its id, so that top-level resources cost the indexes of trees nothing; queries add it by hand.
CREATE INDEX resource_list_by_name   ON projections.resource_list (kind, name, id);
CREATE INDEX resource_list_by_parent ON projections.resource_list (parent, kind, name, id) WHERE parent IS NOT NULL;
CREATE INDEX resource_list_by_root   ON projections.resource_list (root, kind, name, id) WHERE parent IS NOT NULL;
CREATE INDEX resource_list_by_path   ON projections.resource_list (root, path, depth, id) WHERE parent IS NOT NULL;
CREATE INDEX resource_list_by_label  ON projections.resource_list USING gin (labels jsonb_path_ops) WHERE labels IS NOT NULL;

-- The phase of every live resource, and what the next event needs to derive the next one (resource_list/basis.rs).
-- `kind` and `name` again, because a page of one phase is a range of one index; `root` is null for a top-level
-- resource. Rows change a few times in their lives, most of them all at once: vacuumed early, so that a range which
-- everything has left is not walked through dead entries.
CREATE TABLE projections.resource_phase (
    id    uuid PRIMARY KEY,
    phase text COLLATE "C" NOT NULL,
    kind  text COLLATE "C" NOT NULL,
    name  text COLLATE "C" NOT NULL,
    root  uuid,
    basis json NOT NULL
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.05, autovacuum_analyze_scale_factor = 0.05);
CREATE INDEX resource_phase_by_phase ON projections.resource_phase (phase, kind, name, id);

-- Who an id was. Never deleted from: events of a resource outlive it and still want its name, and a name leads
-- to every resource that ever bore it.
CREATE TABLE projections.resource_gone (
    id               uuid   PRIMARY KEY,
    kind             text   COLLATE "C" NOT NULL,
    name             text   COLLATE "C" NOT NULL,
    ancestors        uuid[] NOT NULL,
    created_position bigint NOT NULL
);
CREATE INDEX resource_gone_by_name ON projections.resource_gone (kind, name, created_position DESC);

-- Phase counts, kept by difference so that reading them costs the same at any size: of the whole fleet, and of
-- each tree without its root (which would be a row for every top-level resource; its own phase is one probe).
CREATE TABLE projections.phase_count (
    kind  text   COLLATE "C" NOT NULL,
    phase text   COLLATE "C" NOT NULL,
    count bigint NOT NULL CHECK (count > 0),
    PRIMARY KEY (kind, phase)
) WITH (fillfactor = 50);
CREATE TABLE projections.tree_phase_count (
    root  uuid   NOT NULL,
    kind  text   COLLATE "C" NOT NULL,
    phase text   COLLATE "C" NOT NULL,
    count bigint NOT NULL CHECK (count > 0),
    PRIMARY KEY (root, kind, phase)
) WITH (fillfactor = 50);
