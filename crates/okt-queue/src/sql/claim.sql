WITH picked AS MATERIALIZED (
    SELECT j.id
      FROM unnest($2::text[], $3::bigint[]) AS q (kind, slots)
     CROSS JOIN LATERAL (
           SELECT w.id FROM okt_tasks.jobs w
            WHERE w.kind = q.kind AND w.state = 'available' AND w.crashes < 2
            ORDER BY w.priority, w.turn
            LIMIT q.slots
              FOR UPDATE SKIP LOCKED) j
    UNION ALL
    (SELECT j.id
       FROM unnest($2::text[]) AS q (kind)
      CROSS JOIN LATERAL (
            SELECT s.id FROM okt_tasks.jobs s
             WHERE s.kind = q.kind AND s.state = 'available' AND s.crashes >= 2
             ORDER BY s.priority, s.turn
             LIMIT 1
               FOR UPDATE SKIP LOCKED) j
      WHERE $4
      LIMIT 1)
)
UPDATE okt_tasks.jobs j
   SET state = 'running', attempt = j.attempt + 1, claims = j.claims + 1, owner = $1, waiting_for = NULL,
       started_at = clock_timestamp(), heartbeat_at = clock_timestamp()
  FROM picked
 WHERE j.id = picked.id
RETURNING j.id, j.repository_id, j.database, j.kind, j.payload::text AS "payload!", j.attempt, j.max_attempts,
          j.crashes, j.claims, j.cancel_asked_at IS NOT NULL AS "cancelled!"
