WITH told AS MATERIALIZED (
    SELECT *, state IN ('completed', 'cancelled', 'discarded') AS final
      FROM unnest($1::uuid[], $2::int[], $3::text[], $4::bigint[], $5::int[], $6::int[], $7::text[], $8::text[],
                  $9::text[], $13::text[], $14::text[])
           AS t (id, claims, state, delay_ms, refund, crash, waiting_for, message, output, progress, cost)
),
settled AS (
    UPDATE okt_tasks.jobs j
       -- Whoever asked for the end of it does not want it tried again.
       SET state = CASE WHEN t.final OR j.cancel_asked_at IS NULL THEN t.state ELSE 'cancelled' END,
           attempt = j.attempt - t.refund,
           crashes = j.crashes + t.crash,
           owner = NULL,
           waiting_for = t.waiting_for,
           scheduled_at = CASE WHEN t.delay_ms IS NULL THEN j.scheduled_at
                               ELSE clock_timestamp() + t.delay_ms * interval '1 millisecond' END,
           failures = CASE WHEN t.message IS NULL THEN j.failures
                           ELSE okt_tasks.with_failure(j.failures, j.attempt, t.message) END,
           output = coalesce(t.output::jsonb, j.output),
           progress = coalesce(t.progress::jsonb, j.progress),
           cost = coalesce(t.cost::jsonb, j.cost),
           finished_at = CASE WHEN t.final OR j.cancel_asked_at IS NOT NULL THEN clock_timestamp() END,
           finished_in = CASE WHEN t.final OR j.cancel_asked_at IS NOT NULL
                              THEN pg_current_xact_id()::text::bigint END
      FROM told t
     -- Written so that no index but that of ids can be used: the one of running jobs is so small that it looks tempting.
     WHERE j.id = t.id AND j.claims = t.claims AND j.owner IS NOT DISTINCT FROM $11
    RETURNING j.id
)
SELECT array_agg(id) AS ids, pg_notify('okt_jobs_changed', $10)::text AS told,
       CASE WHEN $12 <> '' THEN pg_notify('okt_jobs_waiting', $12)::text END AS waiting
  FROM settled
