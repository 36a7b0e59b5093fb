-- How many answers a person has asked for in a day. It outlives the answers: who deletes one has had it all the same.

CREATE TABLE okt_repository.answer_days (
    repository_id uuid    NOT NULL,
    person        uuid    NOT NULL,
    -- In UTC.
    day           date    NOT NULL,
    count         bigint  NOT NULL CHECK (count > 0),
    PRIMARY KEY (repository_id, person, day)
);

ALTER TABLE okt_repository.answer_days ENABLE ROW LEVEL SECURITY;
ALTER TABLE okt_repository.answer_days FORCE ROW LEVEL SECURITY;
CREATE POLICY repository ON okt_repository.answer_days
    USING (repository_id = okt_repository.current_repository());
