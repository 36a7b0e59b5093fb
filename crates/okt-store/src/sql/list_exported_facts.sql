-- Facts that are neither duplicates nor rejected, from after a number on, with the concepts that are counted for them.
SELECT f.id, f.no, f.text, f.content_hash, f.kind, f.status, f.model, f.promptset_hash, f.source_count, f.created_at, f.similar_to,
       c.ids AS "concept_ids!: Vec<Uuid>", c.names AS "concept_names!: Vec<String>"
  FROM okt_repository.facts f
 CROSS JOIN LATERAL (SELECT coalesce(array_agg(o.id ORDER BY o.name_key, o.no), '{}') AS ids,
                            coalesce(array_agg(o.canonical_name ORDER BY o.name_key, o.no), '{}') AS names
                       FROM okt_repository.relation_facts r
                      CROSS JOIN LATERAL unnest(r.concepts) AS n (no)
                      CROSS JOIN LATERAL (SELECT * FROM okt_repository.concepts k
                                           WHERE k.repository_id = $1 AND k.no = n.no OFFSET 0) AS o
                      WHERE r.repository_id = $1 AND r.fact_no = f.no
                        AND o.merged_into IS NULL AND o.created_at <= $3) AS c
 WHERE f.repository_id = $1 AND f.no > $2 AND f.status IN ('new', 'stable') AND f.created_at <= $3
 ORDER BY f.no
 LIMIT $4
