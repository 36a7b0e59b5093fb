-- A DOI that the document names itself is taken on, unless another source is known by it.
WITH own AS (
    SELECT $12::text AS doi, $18::bytea AS doi_hash
     WHERE $12 IS NOT NULL
       AND NOT EXISTS (SELECT FROM okt_repository.sources o WHERE o.repository_id = $1 AND o.doi_hash = $18 AND o.id <> $2))
UPDATE okt_repository.sources s
   SET status = 'fetched', failure = NULL, kind = $4, content_type = $5,
       title = coalesce($6, title), author = coalesce($7, author), site_name = $8,
       published_at = coalesce($9, published_at), language = $10, license = $11,
       doi = coalesce(s.doi, (SELECT own.doi FROM own)),
       doi_hash = coalesce(s.doi_hash, (SELECT own.doi_hash FROM own)),
       body_sha256 = coalesce($13, body_sha256), body_size = coalesce($14, body_size),
       etag = $15, last_modified = $16,
       fetch_attempts = CASE WHEN $17 = '[]' THEN fetch_attempts ELSE $17::text::jsonb END,
       fetched_at = clock_timestamp()
 WHERE repository_id = $1 AND id = $2 AND job_id = $3 AND status = 'fetching'
