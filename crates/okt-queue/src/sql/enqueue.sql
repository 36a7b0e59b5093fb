WITH queued AS (
    INSERT INTO okt_tasks.jobs
           (id, repository_id, database, kind, state, priority, turn, payload, unique_key,
            subject_kind, subject_id, max_attempts, scheduled_at, caused_by)
    SELECT n.id, n.repository_id, n.database, n.kind,
           CASE WHEN n.delay_ms > 0 THEN 'scheduled' ELSE 'available' END, n.priority, n.turn,
           n.payload::jsonb, n.unique_key, n.subject_kind, n.subject_id, $12,
           clock_timestamp() + n.delay_ms * interval '1 millisecond', n.caused_by
      FROM unnest($1::uuid[], $2::uuid[], $3::text[], $4::text[], $5::smallint[], $6::bigint[], $7::text[],
                  $8::text[], $9::text[], $10::uuid[], $11::bigint[], $15::uuid[])
           AS n (id, repository_id, database, kind, priority, turn, payload, unique_key,
                 subject_kind, subject_id, delay_ms, caused_by)
     WHERE NOT EXISTS (SELECT FROM okt_tasks.jobs j WHERE j.id = n.id)
    RETURNING id
)
SELECT count(*) AS "count!",
       pg_notify('okt_jobs_waiting', $13)::text AS waiting,
       pg_notify('okt_jobs_changed', $14)::text AS changed
  FROM queued
