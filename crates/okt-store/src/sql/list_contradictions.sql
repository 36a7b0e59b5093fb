-- Each of the others once, as its canonical fact.
SELECT o.id, o.text, found.difference AS "difference!", found.cosine AS "cosine!", coalesce(s.state, 'open') AS "state!"
  FROM (SELECT DISTINCT ON (coalesce(x.merged_into, x.no)) coalesce(x.merged_into, x.no) AS no, c.difference, c.cosine
          FROM unnest($3::bigint[], $4::text[], $5::real[]) AS c (no, difference, cosine)
          JOIN okt_repository.facts x ON x.repository_id = $1 AND x.no = c.no
         WHERE coalesce(x.merged_into, x.no) <> $2 AND x.status <> 'rejected'
         ORDER BY coalesce(x.merged_into, x.no), c.cosine DESC) AS found
  JOIN okt_repository.facts o ON o.repository_id = $1 AND o.no = found.no AND o.status <> 'rejected'
 CROSS JOIN LATERAL (SELECT okt_repository.contradiction_state($1, $2, found.no) AS state) AS s
 WHERE s.state IS DISTINCT FROM 'not_a_contradiction'
 ORDER BY found.cosine DESC, o.no
 LIMIT $6
