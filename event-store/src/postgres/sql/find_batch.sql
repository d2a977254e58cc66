-- Takes the log lock; returns one row if the batch committed, none if it never will.
SELECT first_position, event_count, committed_at_us FROM converge.find_batch($1)
