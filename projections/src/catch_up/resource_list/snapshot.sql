-- The first statement of a read. $1 the projection's name, $2 whether plans may use bitmaps ('on', 'off').
-- Returns its position. Locks nothing. What pages read is bounded, but the planner does not know that: compiling a plan
-- would take longer than running it.
SELECT (SELECT position FROM projections.checkpoint WHERE name = $1)
FROM set_config('jit', 'off', true) AS jit, set_config('enable_bitmapscan', $2, true) AS bitmaps
