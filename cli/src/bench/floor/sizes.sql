-- Bytes of the floor's tables with their indexes, and of the rows alone. Locks nothing; returns one row.
SELECT pg_total_relation_size('bench_floor.events') AS events_bytes,
       pg_total_relation_size('bench_floor.head') AS head_bytes,
       (SELECT avg(pg_column_size(h.*))::float8 FROM bench_floor.head AS h) AS head_row_bytes,
       (SELECT avg(length(payload::text) + length(metadata::text))::float8 FROM bench_floor.events) AS json_bytes;
