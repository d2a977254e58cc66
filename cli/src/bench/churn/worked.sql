-- Work recorded behind a position. Locks nothing; one row. The range is short: it begins when the edit does.
SELECT count(*) FROM converge.events WHERE position > $1 AND event_type = 'Worked';
