SELECT n.no AS "no!", s.id AS "id!", s.title, s.published_at
  FROM unnest($2::bigint[]) AS n (no)
 CROSS JOIN LATERAL (
       SELECT DISTINCT l.source_no
         FROM (SELECT n.no
                UNION ALL
               SELECT d.no FROM okt_repository.facts d WHERE d.repository_id = $1 AND d.merged_into = n.no) AS a (no)
        CROSS JOIN LATERAL (SELECT o.source_no FROM okt_repository.fact_sources o
                             WHERE o.repository_id = $1 AND o.fact_no = a.no ORDER BY o.source_no LIMIT $3) AS l
        ORDER BY l.source_no
        LIMIT $3) AS l
  JOIN okt_repository.sources s ON s.repository_id = $1 AND s.no = l.source_no
 ORDER BY n.no, s.no
