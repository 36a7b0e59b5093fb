-- A source that a registry had: what is known of it, its quoted sentences, where it came from, and the contexts that it brings
-- along. What its adder has said of it stays. None if it is another job's.
WITH marked AS (
    UPDATE okt_repository.sources
       SET status = 'processed', failure = NULL, waiting_for = NULL, waiting_budget = NULL, title = coalesce(title, $5),
           author = coalesce(author, $6), kind = coalesce(kind, $7), language = coalesce(language, $8),
           published_at = coalesce(published_at, $9), extraction = $10::text::jsonb, fact_count = $11::bigint,
           processed_at = clock_timestamp()
     WHERE repository_id = $1 AND id = $2 AND job_id = $3 AND status = ANY ($4) AND fact_count = 0
    RETURNING no),
noted AS (
    INSERT INTO okt_repository.registry_imports
           (repository_id, source_no, registry, registry_source, model, package_sha256, key_id, facts, calls, tokens_in,
            tokens_out, micro_usd)
    SELECT $1, m.no, $12, $13, $14, $15, $16, $11::bigint::integer, $17, $18, $19, $20 FROM marked m
    ON CONFLICT (repository_id, source_no) DO UPDATE
       SET registry = excluded.registry, registry_source = excluded.registry_source, model = excluded.model,
           package_sha256 = excluded.package_sha256, key_id = excluded.key_id, facts = excluded.facts,
           calls = excluded.calls, tokens_in = excluded.tokens_in, tokens_out = excluded.tokens_out,
           micro_usd = excluded.micro_usd, imported_at = clock_timestamp()),
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
SELECT no FROM marked
