-- What its adder has said of it stays. A DOI that a document names is told and nothing more: anybody can write any DOI into
-- a page, and it must not be taken for the paper.
UPDATE okt_repository.sources s
   SET status = 'fetched', failure = NULL, kind = $4, content_type = $5,
       title = coalesce(title, $6), author = coalesce(author, $7), site_name = $8,
       published_at = coalesce(published_at, $9), language = $10, license = $11,
       doi = coalesce(doi, $12),
       body_sha256 = coalesce($13, body_sha256), body_size = coalesce($14, body_size),
       fetch_attempts = CASE WHEN $15 = '[]' THEN fetch_attempts ELSE $15::text::jsonb END,
       import_no = NULL, fetched_at = clock_timestamp()
 WHERE repository_id = $1 AND id = $2 AND job_id = $3 AND status = 'fetching'
