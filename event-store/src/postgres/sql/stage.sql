-- Locks the staged rows it writes. Puts items (ordinals $3, parts $4, payloads $5) under (root $1, claim $2); a frame that
-- is sent again replaces itself.
INSERT INTO converge.staging (root, claim_id, ordinal, part, payload)
SELECT $1, $2, w.ordinal, w.part, w.payload
  FROM unnest($3::bigint[], $4::smallint[], $5::text[]) w(ordinal, part, payload)
    ON CONFLICT (root, claim_id, ordinal) DO UPDATE SET part = EXCLUDED.part, payload = EXCLUDED.payload
