SELECT j.id, j.repository_id, j.kind, j.state, j.priority, j.subject_kind, j.subject_id,
       j.attempt, j.max_attempts, j.crashes, j.progress::text AS progress, j.cost::text AS cost,
       j.failures::text AS failures, j.output::text AS output, j.created_at, j.scheduled_at, j.started_at,
       j.heartbeat_at, j.finished_at,
       CASE WHEN j.state = 'available' THEN
                 CASE WHEN EXISTS (SELECT FROM okt_tasks.workers w
                                    WHERE j.kind = ANY (w.kinds) AND w.silent_since IS NULL)
                      THEN 'slot' ELSE 'worker' END
            WHEN j.state = 'scheduled' THEN coalesce(j.waiting_for, 'schedule')
            WHEN j.state = 'retryable' THEN coalesce(j.waiting_for, 'retry') END AS waiting_for,
       -- The id of a successor begins with the same six bytes, so the index of ids is all that this needs.
       ARRAY(SELECT s.id FROM okt_tasks.jobs s
              WHERE s.id BETWEEN (left(j.id::text, 13) || '-0000-0000-000000000000')::uuid
                             AND (left(j.id::text, 13) || '-ffff-ffff-ffffffffffff')::uuid
                AND s.caused_by = j.id
              ORDER BY s.id) AS "successors!"
  FROM okt_tasks.jobs j
 WHERE ($1::uuid IS NULL OR j.repository_id = $1)
   AND ($2::uuid[] IS NULL OR j.id = ANY ($2))
   AND ($3::uuid IS NULL OR j.id < $3)
   AND ($4::text IS NULL OR j.state = $4)
   AND ($5::text IS NULL OR j.kind = $5)
   AND ($7::uuid IS NULL OR (j.subject_kind = $6 AND j.subject_id = $7))
 ORDER BY j.id DESC
 LIMIT $8
