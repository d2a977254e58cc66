-- No locks. The holders of the names (kind $1, name $2) that are held.
SELECT n.kind, n.name, n.id
  FROM unnest($1::text[], $2::text[]) w(kind, name)
  JOIN converge.names n ON n.kind = w.kind AND n.name = w.name
