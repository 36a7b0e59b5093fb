WITH picked AS MATERIALIZED (
    SELECT s.id FROM okt_tasks.jobs s
     WHERE s.kind = ANY ($2::text[]) AND s.state = 'available' AND s.crashes >= 2
     ORDER BY s.priority, s.turn
     LIMIT 1
       FOR UPDATE SKIP LOCKED
)
-- Not started yet: a crash before it is, is none of its doing.
UPDATE okt_tasks.jobs j
   SET state = 'running', attempt = j.attempt + 1, claims = j.claims + 1, owner = $1, waiting_for = NULL,
       started_at = NULL, heartbeat_at = clock_timestamp()
-- As an array, because the planner takes a limit that it can't know for a tenth of the table, and would read all of it.
 WHERE j.id = ANY (ARRAY(SELECT id FROM picked))
RETURNING j.id, j.repository_id, j.database, j.kind, j.payload::text AS "payload!", j.attempt, j.max_attempts,
          j.crashes, j.claims, j.cost::text AS cost, j.cancel_asked_at IS NOT NULL AS "cancelled!"
