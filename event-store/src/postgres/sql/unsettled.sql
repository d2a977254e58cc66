-- No locks. All child rows by (parent, id) after ($1, $2), at most $3: a merge of one index range per mark.
SELECT parent, id FROM (
    (SELECT parent, id FROM converge.child WHERE mark = 1 AND (parent, id) > ($1, $2) ORDER BY parent, id LIMIT $3)
    UNION ALL
    (SELECT parent, id FROM converge.child WHERE mark = 2 AND (parent, id) > ($1, $2) ORDER BY parent, id LIMIT $3)
    UNION ALL
    (SELECT parent, id FROM converge.child WHERE mark = 3 AND (parent, id) > ($1, $2) ORDER BY parent, id LIMIT $3)
) c
 ORDER BY parent, id
 LIMIT $3
