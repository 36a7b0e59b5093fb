-- no-transaction
-- Sources by their DOI, also one that only the document names. A DOI may be longer than what an index takes, but none that
-- anybody registered is.
CREATE INDEX CONCURRENTLY IF NOT EXISTS sources_dois_idx ON okt_repository.sources (repository_id, doi)
    WHERE length(doi) <= 500;
