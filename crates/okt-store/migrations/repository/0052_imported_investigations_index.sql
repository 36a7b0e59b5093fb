-- no-transaction
-- Investigations by the import that they came with, for taking it out again.
CREATE INDEX CONCURRENTLY IF NOT EXISTS investigations_import_idx ON okt_repository.investigations (repository_id, import_no)
    WHERE import_no IS NOT NULL;
