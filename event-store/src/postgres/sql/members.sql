-- No locks. All members with the age of their last beat in ms.
SELECT session, role, host, broker_address, served,
       floor(extract(epoch FROM clock_timestamp() - beat_at) * 1000)::bigint AS age
  FROM converge.member
 ORDER BY session
