-- A source that a registry had: what is known of it, its quoted sentences, where it came from, and the contexts that it brings
-- along. What its adder has said of it stays. None if it is another job's.
WITH held AS MATERIALIZED (
    SELECT no FROM okt_repository.sources
     WHERE repository_id = $1 AND id = $2 AND job_id = $3 AND status = ANY ($4) AND fact_count = 0
       FOR UPDATE),
noted AS (
    INSERT INTO okt_repository.imports
           (repository_id, kind, job_id, registry, registry_item, model, sha256, key_id, pushed_by, facts, calls, tokens_in,
            tokens_out, micro_usd)
    SELECT $1, 'package', $3, $12, $13, $14, $15, $16, $26, $11, $17, $18, $19, $20 FROM held
    RETURNING no),
marked AS (
    UPDATE okt_repository.sources s
       SET status = 'processed', failure = NULL, waiting_for = NULL, waiting_budget = NULL, title = coalesce(s.title, $5),
           author = coalesce(s.author, $6), kind = coalesce(s.kind, $7), language = coalesce(s.language, $8),
           published_at = coalesce(s.published_at, $9), extraction = $10::text::jsonb, fact_count = $11::bigint,
           import_no = n.no, processed_at = clock_timestamp()
      FROM held h CROSS JOIN noted n
     WHERE s.repository_id = $1 AND s.no = h.no
    RETURNING s.no, n.no AS import_no),
told AS (
    INSERT INTO okt_repository.source_texts
           (repository_id, source_id, text, markdown, sentences, segmenter, segmenter_hash, pages)
    SELECT $1, $2, $21, $21, $22::integer[], $23, '', '[]' FROM marked WHERE $21 <> ''
    ON CONFLICT (repository_id, source_id) DO UPDATE
       SET text = excluded.text, markdown = excluded.markdown, sentences = excluded.sentences, boxes = NULL,
           segmenter = excluded.segmenter, segmenter_hash = excluded.segmenter_hash, pages = excluded.pages),
filed AS (
    INSERT INTO okt_repository.contexts (repository_id, label, description, ontology_class)
    SELECT $1, n.label, '', n.class FROM marked CROSS JOIN unnest($24::text[], $25::text[]) AS n (label, class)
    ON CONFLICT (repository_id, lower(label)) DO NOTHING)
-- Whether anybody wants to hear of it, so that nobody is asked about that once more.
SELECT no, import_no,
       EXISTS (SELECT FROM okt_repository.webhooks
                WHERE repository_id = $1 AND disabled_at IS NULL AND $27 = ANY (events)) AS "is_heard!"
  FROM marked
