-- What found that two facts say the same: `rule`, `cosine` or `judge` (a model). Not known of merges made before.
ALTER TABLE okt_repository.fact_merges ADD COLUMN merged_by text;
