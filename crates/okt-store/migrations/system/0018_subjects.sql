-- stops-old-processes
-- What a call was made for, as a kind and an id. Changes no row: the default fills in the kind of those that are there.
-- Calls without an id have no subject, whatever their kind says.
ALTER TABLE okt_system.ai_calls RENAME COLUMN source_id TO subject_id;
ALTER TABLE okt_system.ai_calls ADD COLUMN subject_kind text DEFAULT 'source';
ALTER TABLE okt_system.ai_calls
    ALTER COLUMN subject_kind DROP DEFAULT,
    -- A question that is answered at once has no job.
    ALTER COLUMN job_id DROP NOT NULL;
ALTER INDEX okt_system.ai_calls_source_idx RENAME TO ai_calls_subject_idx;

-- What has vectors. Each kind changes its model by itself, so each has one space that is searched.
ALTER TABLE okt_system.embedding_spaces ADD COLUMN kind text NOT NULL DEFAULT 'facts'
    CONSTRAINT embedding_spaces_kind_check CHECK (kind IN ('facts', 'concepts', 'passages'));
ALTER TABLE okt_system.embedding_spaces ALTER COLUMN kind DROP DEFAULT;
DROP INDEX okt_system.embedding_spaces_current_key;
DROP INDEX okt_system.embedding_spaces_filling_key;
CREATE UNIQUE INDEX embedding_spaces_current_key ON okt_system.embedding_spaces (kind) WHERE state = 'current';
CREATE UNIQUE INDEX embedding_spaces_filling_key ON okt_system.embedding_spaces (kind) WHERE state = 'filling';
