-- No locks. The holders of the names (kind $1, name $2) that are held. One probe a name, whatever statistics say.
SELECT n.kind, n.name, n.id
  FROM unnest($1::text[], $2::text[]) w(kind, name)
 CROSS JOIN LATERAL (SELECT * FROM converge.names WHERE kind = w.kind AND name = w.name OFFSET 0) n
