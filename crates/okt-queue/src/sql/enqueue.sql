WITH new AS MATERIALIZED (
    SELECT n.*, coalesce(n.repository_id, '00000000-0000-0000-0000-000000000000') AS lane
      FROM unnest($1::uuid[], $2::uuid[], $3::text[], $4::text[], $5::smallint[], $6::text[], $7::text[],
                  $8::uuid[], $9::uuid[], $10::uuid[], $11::bigint[])
           WITH ORDINALITY
           AS n (id, repository_id, database, kind, priority, payload, unique_key,
                 source_id, investigation_id, report_id, delay_ms, place)
     WHERE NOT EXISTS (SELECT FROM okt_tasks.jobs j WHERE j.id = n.id)
),
-- The turn before the one that is served now; with nobody waiting, the last that was ever given.
front AS MATERIALIZED (
    SELECT k.kind, k.priority, coalesce(
               (SELECT j.turn - 1 FROM okt_tasks.jobs j
                 WHERE j.kind = k.kind AND j.priority = k.priority AND j.state = 'available' AND j.crashes < 2
                 ORDER BY j.turn LIMIT 1),
               (SELECT l.turn FROM okt_tasks.lanes l
                 WHERE l.kind = k.kind AND l.priority = k.priority
                 ORDER BY l.turn DESC LIMIT 1),
               0) AS turn
      FROM (SELECT DISTINCT kind, priority FROM new) k
),
-- In order, so that two who queue for the same repositories do not wait for each other.
lane AS (
    INSERT INTO okt_tasks.lanes AS l (kind, priority, repository_id, turn, added)
    SELECT n.kind, n.priority, n.lane, f.turn + count(*), count(*)
      FROM new n JOIN front f ON f.kind = n.kind AND f.priority = n.priority
     GROUP BY n.kind, n.priority, n.lane, f.turn
     ORDER BY n.kind, n.priority, n.lane
    ON CONFLICT (kind, priority, repository_id) DO UPDATE
       SET turn = greatest(l.turn, excluded.turn - excluded.added) + excluded.added, added = excluded.added
    RETURNING l.kind, l.priority, l.repository_id, l.turn - l.added AS before
),
queued AS (
    INSERT INTO okt_tasks.jobs
           (id, repository_id, database, kind, state, priority, turn, payload, unique_key,
            source_id, investigation_id, report_id, max_attempts, scheduled_at)
    SELECT n.id, n.repository_id, n.database, n.kind,
           CASE WHEN n.delay_ms > 0 THEN 'scheduled' ELSE 'available' END, n.priority,
           l.before + row_number() OVER (PARTITION BY n.kind, n.priority, n.lane ORDER BY n.place),
           n.payload::jsonb, n.unique_key, n.source_id, n.investigation_id, n.report_id, $12,
           clock_timestamp() + n.delay_ms * interval '1 millisecond'
      FROM new n
      JOIN lane l ON l.kind = n.kind AND l.priority = n.priority AND l.repository_id = n.lane
    ON CONFLICT DO NOTHING
    RETURNING id
)
SELECT count(*) AS "count!",
       pg_notify('okt_jobs_waiting', $13)::text AS waiting,
       pg_notify('okt_jobs_changed', $14)::text AS changed
  FROM queued
