WITH picked AS MATERIALIZED (
    SELECT j.id
      FROM unnest($2::text[], $3::bigint[]) AS q (kind, slots)
     CROSS JOIN LATERAL (
           SELECT w.id FROM okt_tasks.jobs w
            WHERE w.kind = q.kind AND w.state = 'available' AND w.crashes < 2
            ORDER BY w.priority, w.turn
            LIMIT q.slots
              FOR UPDATE SKIP LOCKED) j
)
UPDATE okt_tasks.jobs j
   SET state = 'running', attempt = j.attempt + 1, claims = j.claims + 1, owner = $1, waiting_for = NULL,
       started_at = clock_timestamp(), heartbeat_at = clock_timestamp()
-- As an array, because the planner takes a limit that it can't know for a tenth of the table, and would read all of it.
 WHERE j.id = ANY (ARRAY(SELECT id FROM picked))
RETURNING j.id, j.repository_id, j.database, j.kind, j.payload::text AS "payload!", j.attempt, j.max_attempts,
          j.crashes, j.claims, j.cost::text AS cost, j.cancel_asked_at IS NOT NULL AS "cancelled!"
