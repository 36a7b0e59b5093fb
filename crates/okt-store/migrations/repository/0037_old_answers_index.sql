-- no-transaction
-- What models said to questions that nobody keeps, the oldest first: they are deleted after some days.
CREATE INDEX CONCURRENTLY IF NOT EXISTS model_answers_questions_idx
    ON okt_repository.model_answers (repository_id, created_at) WHERE subject_kind = 'question';
