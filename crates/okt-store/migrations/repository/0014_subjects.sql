-- stops-old-processes
-- What a job or an answer is about, as a kind and an id. Changes no row: the default fills in the kind of those that are
-- there. Outbox entries without an id have no subject, whatever their kind says.
ALTER TABLE okt_repository.outbox RENAME COLUMN source_id TO subject_id;
ALTER TABLE okt_repository.outbox
    ADD COLUMN subject_kind text DEFAULT 'source',
    DROP COLUMN investigation_id,
    DROP COLUMN report_id;
ALTER TABLE okt_repository.outbox ALTER COLUMN subject_kind DROP DEFAULT;

ALTER TABLE okt_repository.model_answers RENAME COLUMN source_id TO subject_id;
ALTER TABLE okt_repository.model_answers ADD COLUMN subject_kind text NOT NULL DEFAULT 'source';
-- A question that is answered at once has no job.
ALTER TABLE okt_repository.model_answers
    ALTER COLUMN subject_kind DROP DEFAULT,
    ALTER COLUMN job_id DROP NOT NULL;
ALTER INDEX okt_repository.model_answers_source_idx RENAME TO model_answers_subject_idx;
