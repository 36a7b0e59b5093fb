-- Money in millionths of a US dollar, as in the system's tables; converted in place for the same reason, and renamed so that a
-- process of the release before does not write dollars here.
ALTER TABLE okt_repository.sources
    DROP CONSTRAINT sources_max_cost_usd_check,
    ALTER COLUMN usd DROP DEFAULT,
    ALTER COLUMN max_cost_usd TYPE bigint USING round(max_cost_usd::numeric * 1000000)::bigint,
    ALTER COLUMN usd TYPE bigint USING ceil(usd::numeric * 1000000)::bigint,
    -- Whose budget it waits for, where it waits for one.
    ADD COLUMN waiting_budget text CHECK (waiting_budget IN ('repository', 'installation'));
ALTER TABLE okt_repository.sources RENAME COLUMN max_cost_usd TO max_cost_micro_usd;
ALTER TABLE okt_repository.sources RENAME COLUMN usd TO micro_usd;
ALTER TABLE okt_repository.sources
    ALTER COLUMN micro_usd SET DEFAULT 0,
    ADD CHECK (max_cost_micro_usd >= 0);

ALTER TABLE okt_repository.model_answers ALTER COLUMN usd TYPE bigint USING ceil(usd::numeric * 1000000)::bigint;
ALTER TABLE okt_repository.model_answers RENAME COLUMN usd TO micro_usd;
