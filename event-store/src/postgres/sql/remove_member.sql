-- Locks the member row of session $1 and deletes it.
DELETE FROM converge.member WHERE session = $1
