-- Where owners stand, for the paths of new children. $1 ids. Locks nothing.
SELECT id, path FROM projections.resource_list WHERE id = ANY ($1)
