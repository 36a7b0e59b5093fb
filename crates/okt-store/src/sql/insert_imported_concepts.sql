-- New concepts with the words of their names, in contexts that are held and that count them. An id that is another concept's
-- already is not taken. They were compared with others where they come from.
WITH added AS (
    INSERT INTO okt_repository.concepts
           (repository_id, id, canonical_name, name_key, context_no, unmapped_label, refined, vector_id, embedded_in, import_no)
    SELECT $1,
           CASE WHEN EXISTS (SELECT FROM okt_repository.concepts o WHERE o.repository_id = $1 AND o.id = n.id)
                THEN n.spare ELSE n.id END,
           n.name, n.key, n.context_no, n.unmapped_label, true, n.vector, CASE WHEN n.vector IS NOT NULL THEN $9::smallint END, $13
      FROM unnest($2::uuid[], $3::uuid[], $4::text[], $5::text[], $6::bigint[], $7::text[], $8::uuid[])
           AS n (id, spare, name, key, context_no, unmapped_label, vector)
    ON CONFLICT (repository_id, name_key, context_no) WHERE merged_into IS NULL DO NOTHING
    RETURNING no, id, name_key, context_no),
words AS (
    INSERT INTO okt_repository.concept_words (repository_id, word_key, concept_no)
    SELECT $1, w.word, a.no
      FROM unnest($10::text[], $11::text[], $12::bigint[]) AS w (word, key, context_no)
      JOIN added a ON a.name_key = w.key AND a.context_no = w.context_no
    ON CONFLICT (repository_id, word_key, concept_no) DO NOTHING),
counted AS (
    UPDATE okt_repository.contexts c SET concept_count = c.concept_count + n.concepts
      FROM (SELECT context_no, count(*) AS concepts FROM added GROUP BY context_no) AS n
     WHERE c.repository_id = $1 AND c.no = n.context_no)
SELECT id AS "id!", name_key AS "name_key!", context_no AS "context_no!" FROM added
