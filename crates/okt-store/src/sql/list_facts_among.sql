-- Those that the source makes and that speak of all the concepts: found by their links, which are few, and then put in order.
SELECT f.id, f.no, f.text, f.content_hash, f.kind, f.status, f.model, f.promptset_hash, f.source_count, f.created_at
  FROM (SELECT l.fact_no
          FROM (SELECT s.fact_no FROM okt_repository.fact_sources s WHERE s.repository_id = $1 AND s.source_no = $8
                 UNION ALL
                SELECT c.fact_no FROM okt_repository.fact_concepts c
                 WHERE c.repository_id = $1 AND c.concept_no = ANY ($9::bigint[])) AS l
         GROUP BY l.fact_no
        HAVING count(*) = $10) AS among
  JOIN okt_repository.facts f ON f.repository_id = $1 AND f.no = among.fact_no
 WHERE (CASE WHEN $11::boolean THEN f.source_count ELSE 0 END, f.no)
       < (coalesce($7::integer, 2147483647), coalesce($2::bigint, 9223372036854775807))
   AND ($3::text IS NULL OR f.status = $3)
   AND ($4::text IS NULL OR f.kind = $4)
   AND ($5::text IS NULL OR strpos(lower(f.text), $5) > 0)
 ORDER BY CASE WHEN $11::boolean THEN f.source_count ELSE 0 END DESC, f.no DESC
 LIMIT $6
