-- Which concepts were compared with those that may be the same thing.
ALTER TABLE okt_repository.concepts ADD COLUMN refined boolean NOT NULL DEFAULT false;
-- squawk-ignore require-concurrent-index-creation
CREATE INDEX concepts_unrefined_idx ON okt_repository.concepts (repository_id, no)
    WHERE NOT refined AND merged_into IS NULL;

-- What a model said of pairs that were not merged: it is not asked, and paid, again.
CREATE TABLE okt_repository.concept_verdicts (
    repository_id uuid        NOT NULL,
    one_no        bigint      NOT NULL,
    other_no      bigint      NOT NULL CHECK (one_no < other_no),
    verdict       text        NOT NULL CHECK (verdict IN ('same', 'different', 'unsure')),
    -- A number made of the model and its instructions.
    judge         bigint      NOT NULL,
    judged_at     timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (repository_id, one_no, other_no)
);
CREATE INDEX concept_verdicts_other_idx ON okt_repository.concept_verdicts (repository_id, other_no);
ALTER TABLE okt_repository.concept_verdicts ENABLE ROW LEVEL SECURITY;
ALTER TABLE okt_repository.concept_verdicts FORCE ROW LEVEL SECURITY;
CREATE POLICY repository ON okt_repository.concept_verdicts
    USING (repository_id = okt_repository.current_repository());
