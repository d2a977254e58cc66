-- The share of the head's updates that touched no index. Locks nothing; returns one number, or null before any update.
SELECT n_tup_hot_upd::float8 / nullif(n_tup_upd, 0)
FROM pg_stat_user_tables
WHERE schemaname = 'bench_floor' AND relname = 'head';
