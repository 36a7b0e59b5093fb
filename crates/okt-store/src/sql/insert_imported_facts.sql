-- What a source makes that was imported: new facts, and those that are here and held, each with the sentences that it rests on.
-- An id that is another fact's already is not taken. With a reader, nobody reads them for concepts any more.
WITH wanted AS MATERIALIZED (
    SELECT * FROM unnest($2::uuid[], $3::uuid[], $4::text[], $5::bytea[], $6::text[], $7::bigint[], $8::text[])
                  AS n (id, spare, text, hash, kind, held, sentences)),
added AS (
    INSERT INTO okt_repository.facts
           (repository_id, id, text, content_hash, kind, status, model, promptset_hash, source_count)
    SELECT $1,
           CASE WHEN EXISTS (SELECT FROM okt_repository.facts o WHERE o.repository_id = $1 AND o.id = w.id)
                THEN w.spare ELSE w.id END,
           w.text, w.hash, w.kind,
           -- One that a person rejected when it was here before.
           CASE WHEN EXISTS (SELECT FROM okt_repository.rejected_facts r WHERE r.repository_id = $1 AND r.content_hash = w.hash)
                THEN 'rejected' ELSE $9 END,
           $10, $11, 1
      FROM wanted w
     WHERE w.held IS NULL
     -- Everybody in the same order, so that nobody waits in a circle.
     ORDER BY w.hash
    ON CONFLICT (repository_id, content_hash) DO NOTHING
    RETURNING no, id, content_hash),
numbered AS (
    SELECT w.hash, w.sentences, a.id, CASE WHEN w.held IS NULL THEN a.no ELSE w.held END AS no
      FROM wanted w LEFT JOIN added a ON a.content_hash = w.hash),
linked AS (
    INSERT INTO okt_repository.fact_sources (repository_id, source_no, fact_no, chunk_no, sentences, image_id, import_no)
    SELECT $1, $12, n.no, NULL, n.sentences::integer[], NULL, $15 FROM numbered n WHERE n.no IS NOT NULL),
counted AS (
    UPDATE okt_repository.facts f SET source_count = f.source_count + 1
     WHERE f.repository_id = $1 AND f.no = ANY ($14::bigint[])),
read AS (
    INSERT INTO okt_repository.concept_readings (repository_id, fact_no, reader, source_no, batch, done)
    SELECT $1, n.no, $13, NULL, n.no, true FROM numbered n WHERE n.no IS NOT NULL AND $13::bigint IS NOT NULL
    ON CONFLICT (repository_id, fact_no) DO NOTHING)
SELECT hash AS "hash!", id AS "id?", no AS "no?" FROM numbered
