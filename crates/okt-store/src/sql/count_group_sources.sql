-- How many sources make any fact of each group, themselves or through others that say the same.
SELECT r.no, r.id, c.sources AS "sources!"
  FROM (SELECT n.representative, count(DISTINCT l.source_no) AS sources
          FROM unnest($2::bigint[], $3::bigint[]) AS n (fact, representative)
         CROSS JOIN LATERAL (SELECT n.fact AS no
                              UNION ALL
                             SELECT d.no FROM okt_repository.facts d
                              WHERE d.repository_id = $1 AND d.merged_into = n.fact) AS a
          JOIN okt_repository.fact_sources l ON l.repository_id = $1 AND l.fact_no = a.no
         GROUP BY n.representative) AS c
  JOIN okt_repository.facts r ON r.repository_id = $1 AND r.no = c.representative
