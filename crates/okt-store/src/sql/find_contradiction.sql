SELECT f.no AS "one!", o.no AS "other!", c.difference AS "difference!", c.cosine AS "cosine!", c.found_by AS "found_by!",
       c.found_at AS "found_at!", c.judged_by AS "judged_by?", c.confidence AS "confidence?",
       s.state AS "state?", s.note AS "note?", s.person AS "person?", s.decided_at AS "decided_at?",
       c.other_no AS "place!", c.fact_no AS "other_place!"
  FROM okt_repository.facts a
  JOIN okt_repository.facts f ON f.repository_id = $1 AND f.no = coalesce(a.merged_into, a.no) AND f.status IN ('new', 'stable')
 CROSS JOIN okt_repository.facts b
  JOIN okt_repository.facts o ON o.repository_id = $1 AND o.no = coalesce(b.merged_into, b.no) AND o.status IN ('new', 'stable')
 CROSS JOIN LATERAL (SELECT d.*, e.judged_by, e.confidence FROM okt_repository.contradictions_between($1, f.no, o.no) d
                      JOIN okt_repository.fact_contradictions e
                        ON e.repository_id = $1 AND e.fact_no = d.fact_no AND e.other_no = d.other_no
                      ORDER BY d.cosine DESC, d.other_no DESC, d.fact_no DESC LIMIT 1) AS c
  LEFT JOIN LATERAL (SELECT * FROM okt_repository.contradiction_states_between($1, f.no, o.no) n
                      ORDER BY n.decided_at DESC LIMIT 1) AS s ON true
 WHERE a.repository_id = $1 AND a.id = $2 AND b.repository_id = $1 AND b.id = $3 AND f.no <> o.no
