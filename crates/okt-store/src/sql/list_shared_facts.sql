-- Facts of one concept that are facts of another one too, as list_concept_facts.sql has them: from the newest link to the one on.
-- Whether they are facts of the other is read from what is counted, one row for a fact, so that the list and the count agree.
WITH RECURSIVE members AS (
    SELECT $2::bigint AS no
     UNION
    SELECT p.no FROM members m
    CROSS JOIN LATERAL (SELECT * FROM okt_repository.concepts o
                         WHERE o.repository_id = $1 AND o.merged_into = m.no OFFSET 0) AS p),
page AS (
    SELECT n.place, n.canonical
      FROM members m
     CROSS JOIN LATERAL (
           SELECT l.fact_no AS place, c.no AS canonical
             FROM okt_repository.fact_concepts l
             JOIN okt_repository.facts f ON f.repository_id = $1 AND f.no = l.fact_no
             JOIN okt_repository.facts c
               ON c.repository_id = $1 AND c.status IN ('new', 'stable')
              AND c.no = CASE WHEN f.merged_into IS NULL THEN f.no ELSE f.merged_into END
            WHERE l.repository_id = $1 AND l.concept_no = m.no AND l.fact_no < $4::bigint
              AND EXISTS (SELECT FROM okt_repository.relation_facts r
                           WHERE r.repository_id = $1 AND r.fact_no = c.no AND $3::bigint = ANY (r.concepts))
              -- No later link to the same fact, or to this one by another member.
              AND NOT EXISTS (SELECT FROM okt_repository.facts d
                                JOIN okt_repository.fact_concepts o ON o.repository_id = $1 AND o.fact_no = d.no
                                JOIN members s ON s.no = o.concept_no
                               WHERE d.repository_id = $1 AND (d.no = c.no OR d.merged_into = c.no)
                                 AND (d.no > f.no OR (d.no = f.no AND o.concept_no > l.concept_no)))
            ORDER BY l.fact_no DESC
            LIMIT $5) AS n
     ORDER BY n.place DESC
     LIMIT $5)
SELECT p.place AS "place!", f.id, f.no, f.text, f.content_hash, f.kind, f.status, f.model, f.promptset_hash, f.source_count,
       f.created_at, f.similar_to
  FROM page p
  JOIN okt_repository.facts f ON f.repository_id = $1 AND f.no = p.canonical
 ORDER BY p.place DESC
