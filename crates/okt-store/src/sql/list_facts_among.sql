-- Those that the source makes, that speak of all the concepts and that are among the given ones: found by their links and numbers,
-- which are few, and then put in order.
WITH among AS (
    SELECT l.fact_no
      FROM (SELECT unnest($5::bigint[]) AS fact_no, -1::bigint AS by
             UNION
            SELECT unnest(ARRAY[s.fact_no, m.merged_into]), 0
              FROM okt_repository.fact_sources s
              JOIN okt_repository.facts m ON m.repository_id = $1 AND m.no = s.fact_no
             WHERE s.repository_id = $1 AND s.source_no = $8
             UNION
            -- A concept's links are its own and those of the concepts that were merged into it.
            SELECT unnest(ARRAY[c.fact_no, m.merged_into]), n.concept_no
              FROM unnest($9::bigint[], $13::bigint[]) AS n (member, concept_no)
              JOIN okt_repository.fact_concepts c ON c.repository_id = $1 AND c.concept_no = n.member
              JOIN okt_repository.facts m ON m.repository_id = $1 AND m.no = c.fact_no) AS l
     WHERE l.fact_no IS NOT NULL
     GROUP BY l.fact_no
    HAVING count(*) = $10)
SELECT f.id, f.no, f.text, f.content_hash, f.kind, f.status, f.model, f.promptset_hash, f.source_count, f.created_at, f.similar_to
  FROM among
  JOIN okt_repository.facts f ON f.repository_id = $1 AND f.no = among.fact_no
 WHERE (CASE WHEN $11::boolean THEN f.source_count ELSE 0 END, f.no)
       < (coalesce($7::integer, 2147483647), coalesce($2::bigint, 9223372036854775807))
   -- A duplicate is shown with its canonical fact.
   AND CASE WHEN $3::text IS NULL THEN f.status <> 'duplicate' ELSE f.status = $3 END
   AND ($4::text IS NULL OR f.kind = $4)
   -- One of each group: its representative, or the oldest that is asked for where that is not.
   AND (NOT $12::boolean OR f.similar_to IS NULL
        OR NOT EXISTS (SELECT FROM okt_repository.facts o
                        WHERE o.repository_id = $1
                          AND (o.no = f.similar_to OR (o.similar_to = f.similar_to AND o.no < f.no))
                          AND o.no IN (SELECT fact_no FROM among)
                          AND ($3::text IS NULL OR o.status = $3)
                          AND ($4::text IS NULL OR o.kind = $4)))
 ORDER BY CASE WHEN $11::boolean THEN f.source_count ELSE 0 END DESC, f.no DESC
 LIMIT $6
