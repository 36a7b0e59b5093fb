SELECT n.no AS "no!", f.id AS "id!", count(DISTINCT l.source_no) AS "sources!",
       min(s.published_at) AS "first?", max(s.published_at) AS "last?"
  FROM unnest($2::bigint[]) AS n (no)
  JOIN okt_repository.facts f ON f.repository_id = $1 AND f.no = n.no
 CROSS JOIN LATERAL (SELECT n.no
                      UNION ALL
                     SELECT d.no FROM okt_repository.facts d
                      WHERE d.repository_id = $1 AND d.merged_into = n.no) AS a (no)
  LEFT JOIN LATERAL (SELECT o.source_no FROM okt_repository.fact_sources o
                      WHERE o.repository_id = $1 AND o.fact_no = a.no OFFSET 0) AS l ON true
  LEFT JOIN LATERAL (SELECT o.published_at FROM okt_repository.sources o
                      WHERE o.repository_id = $1 AND o.no = l.source_no OFFSET 0) AS s ON true
 GROUP BY n.no, f.id
