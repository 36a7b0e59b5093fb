SELECT c.id, c.no, c.canonical_name, c.name_key, c.context_no, x.label, x.ontology_class, c.description, c.unmapped_label,
       c.fact_count, c.created_at
  FROM (SELECT * FROM okt_repository.concepts
         WHERE repository_id = $1 AND merged_into IS NULL AND context_no = $8::bigint
           AND (fact_count, no) < ($2::bigint, $3::bigint) AND fact_count >= $4::bigint
           -- Where there is a prefix, a plan is made for it, which may find it by name.
           AND ($5::text IS NULL OR starts_with(name_key, $5))
           AND ($6::text IS NULL OR strpos(name_key, $6) > 0)
         ORDER BY fact_count DESC, no DESC
         LIMIT $7) AS c
  JOIN okt_repository.contexts x ON x.repository_id = $1 AND x.no = c.context_no
 ORDER BY c.fact_count DESC, c.no DESC
