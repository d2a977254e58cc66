-- The first statement of a read. $1 the projection's name, $2 whether plans may use bitmaps ('on', 'off').
-- Returns its position. Locks nothing.
-- What pages read is bounded, but the planner does not know that: compiling a plan would take longer than running it. And a plan
-- for any values could not see that an absent filter filters nothing, and might leave the index that a query was chosen for:
-- each execution is planned for its own values.
SELECT (SELECT position FROM projections.checkpoint WHERE name = $1)
FROM set_config('jit', 'off', true) AS jit,
     set_config('enable_bitmapscan', $2, true) AS bitmaps,
     set_config('plan_cache_mode', 'force_custom_plan', true) AS plans
