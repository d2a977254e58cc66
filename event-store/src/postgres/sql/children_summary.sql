-- No locks. One open and one impaired witness of $1 and up to 1000 dropped children: three probes of one index.
(SELECT mark, id FROM converge.child WHERE mark = 1 AND parent = $1 ORDER BY id LIMIT 1)
UNION ALL
(SELECT mark, id FROM converge.child WHERE mark = 2 AND parent = $1 ORDER BY id LIMIT 1)
UNION ALL
(SELECT mark, id FROM converge.child WHERE mark = 3 AND parent = $1 ORDER BY id LIMIT 1000)
