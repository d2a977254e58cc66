-- No locks. The database's clock in ms.
SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint AS now
