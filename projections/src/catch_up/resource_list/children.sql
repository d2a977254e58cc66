-- A page of children for each of several owners at once, by resource_list_by_parent.
-- $1 owners, $2..$4 kind, name, id after which each page starts, $5 limit per owner.
-- Returns parent, then as in page_by_name.sql. Locks nothing.
SELECT page.*
FROM unnest($1::uuid[]) AS wanted (owner)
CROSS JOIN LATERAL (
    SELECT parent, id, kind, name, depth, path
    FROM projections.resource_list
    WHERE parent = wanted.owner AND (kind, name, id) > ($2, $3, $4)
    ORDER BY kind, name, id
    LIMIT $5
) AS page
