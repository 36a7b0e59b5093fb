-- no-transaction
-- Summaries by the import that they came with, for taking it out again.
CREATE INDEX CONCURRENTLY IF NOT EXISTS concept_summaries_import_idx ON okt_repository.concept_summaries (repository_id, import_no)
    WHERE import_no IS NOT NULL;
