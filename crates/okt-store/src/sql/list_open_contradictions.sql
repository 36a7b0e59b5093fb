-- A pair is listed where the youngest of the facts that it was found between stands.
SELECT k.one AS "one!", k.other AS "other!", c.difference, c.cosine, c.found_by, c.found_at, c.judged_by, c.confidence,
       NULL::text AS "state?", NULL::text AS "note?", NULL::uuid AS "person?", NULL::timestamptz AS "decided_at?",
       c.other_no AS "place!", c.fact_no AS "other_place!"
  FROM okt_repository.fact_contradictions c
  JOIN okt_repository.facts f ON f.repository_id = $1 AND f.no = c.fact_no
  JOIN okt_repository.facts o ON o.repository_id = $1 AND o.no = c.other_no
 CROSS JOIN LATERAL (SELECT coalesce(f.merged_into, f.no) AS one, coalesce(o.merged_into, o.no) AS other) AS k
  JOIN okt_repository.facts a ON a.repository_id = $1 AND a.no = k.one AND a.status IN ('new', 'stable')
  JOIN okt_repository.facts b ON b.repository_id = $1 AND b.no = k.other AND b.status IN ('new', 'stable')
 WHERE c.repository_id = $1 AND c.difference <> 'judged' AND (c.other_no, c.fact_no) < ($2::bigint, $3::bigint)
   AND k.one <> k.other
   AND NOT EXISTS (SELECT FROM okt_repository.contradictions_between($1, k.one, k.other) d
                    WHERE (d.other_no, d.fact_no) > (c.other_no, c.fact_no))
   AND okt_repository.contradiction_state($1, k.one, k.other) IS NULL
 ORDER BY c.other_no DESC, c.fact_no DESC
 LIMIT $4
