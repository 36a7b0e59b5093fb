-- A call that was told before is told once. Its sums are kept with it, in the same order by everybody.
WITH told AS (
    INSERT INTO okt_system.ai_calls
           (id, repository_id, source_id, job_id, operation, model, outcome, tokens_in, tokens_out, usd, latency_ms,
            retries, characters)
    SELECT * FROM unnest($1::uuid[], $2::uuid[], $3::uuid[], $4::uuid[], $5::text[], $6::text[], $7::text[], $8::bigint[],
                         $9::bigint[], $10::float8[], $11::bigint[], $12::integer[], $13::bigint[])
     ORDER BY 1
    ON CONFLICT (id) DO NOTHING
    RETURNING *),
returned AS (DELETE FROM okt_system.ai_holds WHERE call_id = ANY ($1))
INSERT INTO okt_system.ai_days AS d
       (repository_id, day, model, operation, calls, tokens_in, tokens_out, usd, latency_ms, retries, characters)
SELECT repository_id, (at AT TIME ZONE 'UTC')::date, model, operation, count(*), sum(tokens_in), sum(tokens_out),
       sum(usd), sum(latency_ms), sum(retries), sum(characters)
  FROM told GROUP BY 1, 2, 3, 4 ORDER BY 1, 2, 3, 4
ON CONFLICT (repository_id, day, model, operation) DO UPDATE
   SET calls = d.calls + excluded.calls, tokens_in = d.tokens_in + excluded.tokens_in,
       tokens_out = d.tokens_out + excluded.tokens_out, usd = d.usd + excluded.usd,
       latency_ms = d.latency_ms + excluded.latency_ms, retries = d.retries + excluded.retries,
       characters = d.characters + excluded.characters
