-- Locks the member row. Upserts it with the database's time; returns that time in ms.
INSERT INTO converge.member AS m (session, role, host, broker_address, served, beat_at)
VALUES ($1, $2, $3, $4, $5, clock_timestamp())
    ON CONFLICT (session) DO UPDATE
   SET role = EXCLUDED.role, host = EXCLUDED.host, broker_address = EXCLUDED.broker_address,
       served = EXCLUDED.served, beat_at = EXCLUDED.beat_at
RETURNING floor(extract(epoch FROM m.beat_at) * 1000)::bigint AS at
