WITH picked AS MATERIALIZED (
    SELECT j.id
      FROM unnest($2::text[]) AS q (kind)
     CROSS JOIN LATERAL (
           SELECT w.id
             FROM (SELECT f.id, f.repository_id FROM okt_tasks.jobs f
                    WHERE f.kind = q.kind AND f.state = 'available' AND f.crashes < 2
                    ORDER BY f.priority, f.turn
                    LIMIT 50) w
            WHERE NOT EXISTS (SELECT FROM unnest($3::text[], $4::uuid[]) AS b (kind, repository_id)
                               WHERE b.kind = q.kind
                                 AND b.repository_id IS NOT DISTINCT FROM w.repository_id)
            LIMIT 1) c
      JOIN okt_tasks.jobs j ON j.id = c.id AND j.state = 'available'
       FOR UPDATE OF j SKIP LOCKED
)
UPDATE okt_tasks.jobs j
   SET state = 'running', attempt = j.attempt + 1, claims = j.claims + 1, owner = $1, waiting_for = NULL,
       started_at = clock_timestamp(), heartbeat_at = clock_timestamp()
-- As an array, because the planner takes a limit that it can't know for a tenth of the table, and would read all of it.
 WHERE j.id = ANY (ARRAY(SELECT id FROM picked))
RETURNING j.id, j.repository_id, j.database, j.kind, j.payload::text AS "payload!", j.attempt, j.max_attempts,
          j.crashes, j.claims, j.cost::text AS cost, j.cancel_asked_at IS NOT NULL AS "cancelled!"
