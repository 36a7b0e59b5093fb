SELECT j.id, j.repository_id, j.kind, j.state, j.priority, j.source_id, j.investigation_id, j.report_id,
       j.attempt, j.max_attempts, j.crashes, j.progress::text AS progress, j.cost::text AS cost,
       j.failures::text AS failures, j.output::text AS output, j.created_at, j.scheduled_at, j.started_at,
       j.heartbeat_at, j.finished_at,
       CASE WHEN j.state = 'available' THEN
                 CASE WHEN EXISTS (SELECT FROM okt_tasks.workers w
                                    WHERE j.kind = ANY (w.kinds) AND w.silent_since IS NULL)
                      THEN 'slot' ELSE 'worker' END
            WHEN j.state = 'scheduled' THEN coalesce(j.waiting_for, 'schedule')
            WHEN j.state = 'retryable' THEN coalesce(j.waiting_for, 'retry') END AS waiting_for
  FROM okt_tasks.jobs j
 WHERE ($1::uuid IS NULL OR j.repository_id = $1)
   AND ($2::uuid[] IS NULL OR j.id = ANY ($2))
   AND ($3::uuid IS NULL OR j.id < $3)
   AND ($4::text IS NULL OR j.state = $4)
   AND ($5::text IS NULL OR j.kind = $5)
   AND ($6::uuid IS NULL OR j.source_id = $6)
   AND ($7::uuid IS NULL OR j.investigation_id = $7)
   AND ($8::uuid IS NULL OR j.report_id = $8)
 ORDER BY j.id DESC
 LIMIT $9
