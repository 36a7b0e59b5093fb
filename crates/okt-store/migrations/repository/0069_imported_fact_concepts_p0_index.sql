-- no-transaction
-- What facts speak of, by the import that it came with: a part of the index that the last of these files makes of them.
CREATE INDEX CONCURRENTLY IF NOT EXISTS fact_concepts_p0_import_idx ON okt_repository.fact_concepts_p0 (repository_id, import_no)
    WHERE import_no IS NOT NULL;
