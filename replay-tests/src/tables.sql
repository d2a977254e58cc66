-- Every inline row as `(table, columns joined)`, for comparison with what a fold of the log derives.
--
-- One statement, so one snapshot. Takes no lock beyond AccessShare. NULL shows as '-'.
SELECT 'head' AS tbl, concat_ws(' | ', id, kind, kind_version, name, coalesce(parent::text, '-'),
           coalesce(phase::text, '-'), coalesce(standing::text, '-'), coalesce(subtree::text, '-'),
           coalesce(pass_id::text, '-'), outward) AS line
  FROM converge.head
UNION ALL SELECT 'names', concat_ws(' | ', kind, name, id) FROM converge.names
UNION ALL SELECT 'edge', concat_ws(' | ', upstream, dependent) FROM converge.edge
UNION ALL SELECT 'child', concat_ws(' | ', mark, parent, id) FROM converge.child
UNION ALL SELECT 'queue', concat_ws(' | ', kind, kind_version, priority, due_at, id) FROM converge.queue
UNION ALL SELECT 'timer', concat_ws(' | ', due_at, id) FROM converge.timer
UNION ALL SELECT 'claim', concat_ws(' | ', kind, claim_version, claim_session, id) FROM converge.head
           WHERE claim_session IS NOT NULL
UNION ALL SELECT 'kind_policy', concat_ws(' | ', kind, kind_version, max_inflight) FROM converge.kind_policy
