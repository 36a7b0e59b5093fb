-- Facts that say something alike and were not found to say the same.
ALTER TABLE okt_repository.facts
    -- The fact that represents its group. That one has none itself: a star, never a chain.
    ADD COLUMN similar_to bigint;
-- Partitioned tables can't be indexed concurrently. The column is new, so nothing is sorted or written: each partition is
-- read once, and writers of facts wait for that.
-- squawk-ignore require-concurrent-index-creation
CREATE INDEX facts_similar_idx ON okt_repository.facts (repository_id, similar_to) WHERE similar_to IS NOT NULL;
