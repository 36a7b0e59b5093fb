-- What is near in both directions is one pair.
WITH near AS (
    SELECT n.fact, o.no AS other, n.cosine,
           row_number() OVER (PARTITION BY n.fact ORDER BY n.cosine DESC, o.no) AS place
      FROM unnest($2::bigint[], $3::uuid[], $4::real[]) AS n (fact, other, cosine)
      JOIN okt_repository.facts f ON f.repository_id = $1 AND f.no = n.fact AND f.status IN ('new', 'stable')
      JOIN okt_repository.facts o
        ON o.repository_id = $1 AND o.id = n.other AND o.status IN ('new', 'stable') AND o.no <> n.fact
      JOIN okt_repository.relation_facts a ON a.repository_id = $1 AND a.fact_no = f.no
      JOIN okt_repository.relation_facts b ON b.repository_id = $1 AND b.fact_no = o.no AND b.concepts && a.concepts),
wanted AS (
    SELECT least(n.fact, n.other) AS fact_no, greatest(n.fact, n.other) AS other_no, max(n.cosine) AS cosine
      FROM near n
     WHERE n.place <= $5::bigint
     GROUP BY least(n.fact, n.other), greatest(n.fact, n.other))
INSERT INTO okt_repository.fact_judgements AS j (repository_id, fact_no, other_no, cosine)
SELECT $1, w.fact_no, w.other_no, w.cosine FROM wanted w ORDER BY w.fact_no, w.other_no
ON CONFLICT (repository_id, fact_no, other_no) DO UPDATE
   SET judged_by = NULL, no = excluded.no, cosine = excluded.cosine
 WHERE j.judged_by IS NOT NULL AND NOT (j.judged_by = ANY ($6::text[]))
