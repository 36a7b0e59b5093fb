-- What is known of concepts, as far as it tells one from another: names, and the most cited of the facts that were linked first.
-- Those are few however many facts a concept has, and they stay the same when others come.
WITH RECURSIVE members AS (
    SELECT c.no AS root, c.no FROM okt_repository.concepts c
     WHERE c.repository_id = $1 AND c.no = ANY ($2) AND c.merged_into IS NULL
     UNION
    SELECT m.root, c.no FROM members m
     CROSS JOIN LATERAL (SELECT * FROM okt_repository.concepts o
                          WHERE o.repository_id = $1 AND o.merged_into = m.no OFFSET 0) AS c)
SELECT c.no, c.id, c.canonical_name, x.label, c.vector_id, c.embedded_in, c.fact_count,
       EXISTS (SELECT FROM okt_repository.former_names n WHERE n.repository_id = $1 AND n.concept_no = c.no) AS "renamed!",
       ARRAY(SELECT n.name
               FROM (SELECT a.alias AS name FROM members m
                       JOIN okt_repository.concept_aliases a ON a.repository_id = $1 AND a.concept_no = m.no
                      WHERE m.root = c.no
                      UNION
                     SELECT o.canonical_name FROM members m
                       JOIN okt_repository.concepts o ON o.repository_id = $1 AND o.no = m.no
                      WHERE m.root = c.no AND m.no <> c.no) AS n
              WHERE n.name <> c.canonical_name
              ORDER BY n.name COLLATE "C" LIMIT 8) AS "aliases!",
       ARRAY(SELECT f.text
               FROM members m
              CROSS JOIN LATERAL (SELECT l.fact_no FROM okt_repository.fact_concepts l
                                   WHERE l.repository_id = $1 AND l.concept_no = m.no
                                   ORDER BY l.fact_no LIMIT 50) AS l
               JOIN okt_repository.facts f ON f.repository_id = $1 AND f.no = l.fact_no AND f.status = 'stable'
              WHERE m.root = c.no
              ORDER BY f.source_count DESC, f.no LIMIT 3) AS "facts!"
  FROM okt_repository.concepts c
  JOIN okt_repository.contexts x ON x.repository_id = $1 AND x.no = c.context_no
 WHERE c.repository_id = $1 AND c.no = ANY ($2) AND c.merged_into IS NULL
 ORDER BY c.no
