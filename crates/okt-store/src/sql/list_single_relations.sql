-- Of relations that share one fact, in the order of the key: nearly all do, so few rows are passed over.
SELECT c.id, c.no, c.canonical_name, x.label, c.fact_count, r.shared_fact_count
  FROM okt_repository.concept_relations r
  JOIN okt_repository.concepts c ON c.repository_id = $1 AND c.no = r.other_no
  JOIN okt_repository.contexts x ON x.repository_id = $1 AND x.no = c.context_no
 WHERE r.repository_id = $1 AND r.concept_no = $2 AND r.other_no < $3::bigint AND r.shared_fact_count = 1
   AND c.fact_count >= $4::bigint
 ORDER BY r.other_no DESC
 LIMIT $5
