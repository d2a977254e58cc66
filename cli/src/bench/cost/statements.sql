-- What each statement of this database has cost so far, looking at these figures aside. Locks nothing; one row a statement.
SELECT queryid::text AS id, toplevel, min(query) AS query,
       sum(calls)::bigint AS calls, sum(rows)::bigint AS rows, sum(total_exec_time)::float8 AS total_ms
FROM pg_stat_statements
WHERE dbid = (SELECT oid FROM pg_database WHERE datname = current_database())
  AND query NOT LIKE '%pg_stat_statements%' AND query NOT LIKE '%pg_current_wal_insert_lsn%'
GROUP BY queryid, toplevel;
