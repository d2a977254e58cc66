-- Takes a projection over: makes its checkpoint if there is none, raises the epoch in any case.
-- $1 name, $2 version of this build. Returns version, position, epoch. Locks the one row until commit.
-- From here on the runner before us fails its compare-and-set: its epoch is no longer the stored one.
INSERT INTO projections.checkpoint AS mine (name, version, position, epoch)
VALUES ($1, $2, 0, 1)
ON CONFLICT (name) DO UPDATE SET epoch = mine.epoch + 1, updated_at = now()
RETURNING version, position, epoch
