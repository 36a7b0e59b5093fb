-- no-transaction
-- Reports by the import that they came with, for taking it out again.
CREATE INDEX CONCURRENTLY IF NOT EXISTS reports_import_idx ON okt_repository.reports (repository_id, import_no)
    WHERE import_no IS NOT NULL;
