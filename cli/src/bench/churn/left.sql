-- What is left of resources once all are deleted. Locks nothing; one row.
SELECT (SELECT count(*) FROM converge.head WHERE aggregate_type = 'resource') AS heads,
       (SELECT count(*) FROM converge.edge) AS edges,
       (SELECT count(*) FROM converge.queue) AS queued,
       (SELECT count(*) FROM converge.head WHERE claim_session IS NOT NULL) AS claims;
