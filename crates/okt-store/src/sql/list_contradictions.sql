-- Each of the others once, as the fact that stands for it.
SELECT o.id, o.text, found.difference AS "difference!", found.cosine AS "cosine!"
  FROM (SELECT DISTINCT ON (coalesce(x.merged_into, x.no)) coalesce(x.merged_into, x.no) AS no, c.difference, c.cosine
          FROM (SELECT no FROM okt_repository.facts WHERE repository_id = $1 AND no = $2
                 UNION ALL
                SELECT no FROM okt_repository.facts WHERE repository_id = $1 AND merged_into = $2) AS ours
         CROSS JOIN LATERAL (
               SELECT other_no AS no, difference, cosine FROM okt_repository.fact_contradictions
                WHERE repository_id = $1 AND fact_no = ours.no
                UNION ALL
               SELECT fact_no, difference, cosine FROM okt_repository.fact_contradictions
                WHERE repository_id = $1 AND other_no = ours.no) AS c
          JOIN okt_repository.facts x ON x.repository_id = $1 AND x.no = c.no
         WHERE coalesce(x.merged_into, x.no) <> $2 AND x.status <> 'rejected'
         ORDER BY coalesce(x.merged_into, x.no), c.cosine DESC) AS found
  JOIN okt_repository.facts o ON o.repository_id = $1 AND o.no = found.no AND o.status <> 'rejected'
 ORDER BY found.cosine DESC, o.no
 LIMIT $3
