WITH queued AS (
    INSERT INTO okt_tasks.jobs
           (id, repository_id, database, kind, state, priority, turn, payload, unique_key,
            source_id, investigation_id, report_id, max_attempts, scheduled_at)
    SELECT n.id, n.repository_id, n.database, n.kind,
           CASE WHEN n.delay_ms > 0 THEN 'scheduled' ELSE 'available' END, n.priority, n.turn,
           n.payload::jsonb, n.unique_key, n.source_id, n.investigation_id, n.report_id, $13,
           clock_timestamp() + n.delay_ms * interval '1 millisecond'
      FROM unnest($1::uuid[], $2::uuid[], $3::text[], $4::text[], $5::smallint[], $6::bigint[], $7::text[],
                  $8::text[], $9::uuid[], $10::uuid[], $11::uuid[], $12::bigint[])
           AS n (id, repository_id, database, kind, priority, turn, payload, unique_key,
                 source_id, investigation_id, report_id, delay_ms)
    ON CONFLICT DO NOTHING
    RETURNING id
)
SELECT count(*) AS "count!",
       pg_notify('okt_jobs_waiting', $14)::text AS waiting,
       pg_notify('okt_jobs_changed', $15)::text AS changed
  FROM queued
