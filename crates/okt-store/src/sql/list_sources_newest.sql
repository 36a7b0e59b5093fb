SELECT id, url, doi, status, failure::text, job_id, kind, content_type, title, author, site_name,
       published_at, language, license, body_sha256, body_size, file_name,
       fetch_attempts::text AS "fetch_attempts!", max_cost_micro_usd, tokens_in, tokens_out, micro_usd, fact_count,
       waiting_for, waiting_budget, extraction::text, created_at, fetched_at, processed_at
  FROM okt_repository.sources
 WHERE repository_id = $1
   AND id < coalesce($2::uuid, 'ffffffff-ffff-ffff-ffff-ffffffffffff')
   AND ($3::text IS NULL OR status = $3)
   AND ($4::text IS NULL OR kind = $4)
   AND ($5::bigint[] IS NULL OR no = ANY ($5))
   AND ($6::date IS NULL OR published_at >= $6)
   AND ($7::date IS NULL OR published_at <= $7)
 ORDER BY id DESC
 LIMIT $8
