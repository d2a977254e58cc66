-- No locks. Of each of ids $1, whether a live resource has an edge to it and whether it owns one: two probes each.
SELECT u.id,
       EXISTS (SELECT 1 FROM converge.edge e WHERE e.upstream = u.id) AS by_dependents,
       EXISTS (SELECT 1 FROM converge.head h WHERE h.parent = u.id) AS by_children
  FROM unnest($1::uuid[]) AS u (id)
