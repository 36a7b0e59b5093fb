-- Concepts whose name or alias, or that of one that was merged into them, has a word that begins so. There are few of them: they
-- are looked up one by one, and put in order here.
WITH RECURSIVE found AS MATERIALIZED (
    SELECT w.concept_no AS no FROM okt_repository.concept_words w
     WHERE w.repository_id = $1 AND w.word_key >= $2::text AND w.word_key < $3::text
     UNION
    SELECT a.concept_no FROM okt_repository.concept_aliases a
     WHERE a.repository_id = $1 AND a.alias_key >= $4::text AND a.alias_key < $5::text),
led AS (
    SELECT c.no, c.merged_into, c.name_key, c.context_no, c.fact_count
      FROM found f
      CROSS JOIN LATERAL (SELECT * FROM okt_repository.concepts o WHERE o.repository_id = $1 AND o.no = f.no OFFSET 0) AS c
     UNION
    SELECT c.no, c.merged_into, c.name_key, c.context_no, c.fact_count
      FROM led l
      CROSS JOIN LATERAL (SELECT * FROM okt_repository.concepts o
                           WHERE o.repository_id = $1 AND o.no = l.merged_into OFFSET 0) AS c),
page AS (
    SELECT l.no FROM led l
     WHERE l.merged_into IS NULL AND l.fact_count >= $6::bigint AND ($7::bigint IS NULL OR l.context_no = $7)
       AND CASE WHEN $8::boolean THEN (l.name_key, l.context_no) > ($9::text, $10::bigint)
                ELSE (l.fact_count, l.no) < ($11::bigint, $12::bigint) END
     ORDER BY CASE WHEN $8 THEN l.name_key END, CASE WHEN $8 THEN l.context_no END, l.fact_count DESC, l.no DESC
     LIMIT $13)
SELECT c.id, c.no, c.canonical_name, c.name_key, c.context_no, x.label, x.ontology_class, c.description, c.unmapped_label,
       c.fact_count, c.created_at
  FROM page p
  CROSS JOIN LATERAL (SELECT * FROM okt_repository.concepts o WHERE o.repository_id = $1 AND o.no = p.no OFFSET 0) AS c
  JOIN okt_repository.contexts x ON x.repository_id = $1 AND x.no = c.context_no
 ORDER BY CASE WHEN $8 THEN c.name_key END, CASE WHEN $8 THEN c.context_no END, c.fact_count DESC, c.no DESC
