-- Stores labels that changed. $1 ids, $2 labels (null: none). Locks the rows it writes until commit.
UPDATE projections.resource_list AS row
SET labels = new.labels::jsonb
FROM unnest($1::uuid[], $2::text[]) AS new (id, labels)
WHERE row.id = new.id
