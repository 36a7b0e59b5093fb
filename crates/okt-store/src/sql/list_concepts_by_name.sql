SELECT c.id, c.no, c.canonical_name, c.name_key, c.context_no, x.label, x.ontology_class, c.description, c.unmapped_label,
       c.fact_count, c.created_at
  FROM (SELECT * FROM okt_repository.concepts
         WHERE repository_id = $1 AND merged_into IS NULL
           -- One bound at each end: of two at the beginning the lower one might be taken.
           AND (name_key, context_no) > ($2::text, $3::bigint) AND name_key < $5::text
           AND fact_count >= $4::bigint
           AND ($7::bigint IS NULL OR context_no = $7)
         ORDER BY name_key, context_no
         LIMIT $6) AS c
  JOIN okt_repository.contexts x ON x.repository_id = $1 AND x.no = c.context_no
 ORDER BY c.name_key, c.context_no
