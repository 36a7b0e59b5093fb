SELECT j.id, j.repository_id AS "repository_id!", j.database AS "database!", j.kind, j.state, j.subject_id AS "subject_id!",
       j.failures -> -1 ->> 'message' AS message
  FROM okt_tasks.jobs j
 WHERE j.state IN ('cancelled', 'discarded') AND j.subject_kind IN ('source', 'report', 'question') AND j.subject_id IS NOT NULL AND NOT j.end_handled
   AND j.kind = ANY ($1)
   AND j.finished_at < statement_timestamp() - $2::float8 * interval '1 second'
   AND j.repository_id IS NOT NULL AND j.database <> ALL ($3::text[])
 ORDER BY j.finished_at, j.id
 LIMIT $4
