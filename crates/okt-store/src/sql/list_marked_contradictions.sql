-- What was said last of two facts or of their duplicates holds, while it is still found that they may contradict each other.
WITH said AS (
    SELECT coalesce(f.merged_into, f.no) AS one, coalesce(o.merged_into, o.no) AS other,
           s.state, s.note, s.person, s.decided_at
      FROM okt_repository.contradiction_states s
      JOIN okt_repository.facts f ON f.repository_id = $1 AND f.content_hash = s.content_hash
      JOIN okt_repository.facts o ON o.repository_id = $1 AND o.content_hash = s.other_hash
     WHERE s.repository_id = $1),
last AS (
    SELECT DISTINCT ON (greatest(one, other), least(one, other))
           least(one, other) AS one, greatest(one, other) AS other, state, note, person, decided_at
      FROM said
     WHERE one <> other
     ORDER BY greatest(one, other), least(one, other), decided_at DESC)
SELECT l.one AS "one!", l.other AS "other!", c.difference AS "difference!", c.cosine AS "cosine!", c.found_by AS "found_by!",
       c.found_at AS "found_at!", c.judged_by AS "judged_by?", c.confidence AS "confidence?",
       l.state AS "state?", l.note AS "note?", l.person AS "person?", l.decided_at AS "decided_at?",
       l.other AS "place!", l.one AS "other_place!"
  FROM last l
  JOIN okt_repository.facts a ON a.repository_id = $1 AND a.no = l.one AND a.status IN ('new', 'stable')
  JOIN okt_repository.facts b ON b.repository_id = $1 AND b.no = l.other AND b.status IN ('new', 'stable')
 CROSS JOIN LATERAL (SELECT d.*, e.judged_by, e.confidence FROM okt_repository.contradictions_between($1, l.one, l.other) d
                      JOIN okt_repository.fact_contradictions e
                        ON e.repository_id = $1 AND e.fact_no = d.fact_no AND e.other_no = d.other_no
                      ORDER BY d.cosine DESC, d.other_no DESC, d.fact_no DESC LIMIT 1) AS c
 WHERE l.state = $2 AND (l.other, l.one) < ($3::bigint, $4::bigint)
 ORDER BY l.other DESC, l.one DESC
 LIMIT $5
