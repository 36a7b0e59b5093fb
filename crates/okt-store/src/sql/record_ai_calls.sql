-- A call that was told before is told once. Its sums are kept with it, in the same order by everybody.
WITH told AS (
    INSERT INTO okt_system.ai_calls
           (id, repository_id, subject_kind, subject_id, job_id, operation, model, outcome, tokens_in, tokens_out, micro_usd,
            latency_ms, retries, characters)
    SELECT * FROM unnest($1::uuid[], $2::uuid[], $3::text[], $4::uuid[], $5::uuid[], $6::text[], $7::text[], $8::text[],
                         $9::bigint[], $10::bigint[], $11::bigint[], $12::bigint[], $13::integer[], $14::bigint[])
     ORDER BY 1
    ON CONFLICT (id) DO NOTHING
    RETURNING *),
returned AS (DELETE FROM okt_system.ai_holds WHERE call_id = ANY ($1)),
-- Nothing refers to it, so it is done last: whoever has the row of the month waits for no other.
month AS (
    INSERT INTO okt_system.ai_months AS m (month, micro_usd)
    SELECT date_trunc('month', at AT TIME ZONE 'UTC')::date, sum(micro_usd) FROM told
     GROUP BY 1 HAVING sum(micro_usd) > 0 ORDER BY 1
    ON CONFLICT (month) DO UPDATE SET micro_usd = m.micro_usd + excluded.micro_usd)
INSERT INTO okt_system.ai_days AS d
       (repository_id, day, model, operation, calls, tokens_in, tokens_out, micro_usd, latency_ms, retries, characters)
SELECT repository_id, (at AT TIME ZONE 'UTC')::date, model, operation, count(*), sum(tokens_in), sum(tokens_out),
       sum(micro_usd), sum(latency_ms), sum(retries), sum(characters)
  FROM told GROUP BY 1, 2, 3, 4 ORDER BY 1, 2, 3, 4
ON CONFLICT (repository_id, day, model, operation) DO UPDATE
   SET calls = d.calls + excluded.calls, tokens_in = d.tokens_in + excluded.tokens_in,
       tokens_out = d.tokens_out + excluded.tokens_out, micro_usd = d.micro_usd + excluded.micro_usd,
       latency_ms = d.latency_ms + excluded.latency_ms, retries = d.retries + excluded.retries,
       characters = d.characters + excluded.characters
