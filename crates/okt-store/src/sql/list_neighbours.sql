-- Of each of these concepts the strongest relations, so many of each. Those that share one fact are in no index by strength: they
-- are read in the order of the key, where the others are not enough.
SELECT n.no AS "no!", r.other_no AS "other_no!", r.shared_fact_count AS "shared_fact_count!"
  FROM unnest($2::bigint[]) AS n (no)
 CROSS JOIN LATERAL (
       SELECT u.other_no, u.shared_fact_count
         FROM ((SELECT s.other_no, s.shared_fact_count
                  FROM okt_repository.concept_relations s
                 WHERE s.repository_id = $1 AND s.concept_no = n.no AND s.shared_fact_count > 1
                 ORDER BY s.shared_fact_count DESC, s.other_no DESC
                 LIMIT $3)
                UNION ALL
               (SELECT s.other_no, s.shared_fact_count
                  FROM okt_repository.concept_relations s
                 WHERE s.repository_id = $1 AND s.concept_no = n.no AND s.shared_fact_count = 1
                 ORDER BY s.other_no DESC
                 LIMIT $3)) AS u
        LIMIT $3) AS r
