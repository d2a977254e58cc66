-- Takes resources whose stream has ended off the list. $1 ids. Locks those rows until commit.
DELETE FROM projections.resource_list WHERE id = ANY ($1)
