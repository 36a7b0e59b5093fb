-- Where concepts are looked for by the beginning of a word of their names. A part of a name can't be found by an index here:
-- under row-level security only operators that are leakproof are conditions of an index, which leaves the comparison of plain
-- columns. So there is a row for each word of a name, and the beginning of a word is a range. As few as concepts, so it is not
-- partitioned.
CREATE TABLE okt_repository.concept_words (
    repository_id uuid   NOT NULL,
    -- The name as names are compared, from one of its words on: made by the service, by bytes, and cut off after 100 characters.
    word_key      text   COLLATE "C" NOT NULL,
    -- Also one that was merged: what it is part of now is found when it is read.
    concept_no    bigint NOT NULL,
    PRIMARY KEY (repository_id, word_key, concept_no)
);

-- Should there be concepts already. The policies hide them from an owner as well.
ALTER TABLE okt_repository.concepts NO FORCE ROW LEVEL SECURITY;
INSERT INTO okt_repository.concept_words (repository_id, word_key, concept_no)
SELECT DISTINCT c.repository_id, left(substring(c.name FROM p), 100), c.no
  FROM (SELECT repository_id, no, translate(name_key, '-/()[],.:;"', '           ') AS name
          FROM okt_repository.concepts) AS c
 CROSS JOIN generate_series(1, length(c.name)) AS p
 WHERE substring(c.name FROM p FOR 1) <> ' ' AND (p = 1 OR substring(c.name FROM p - 1 FOR 1) = ' ');
ALTER TABLE okt_repository.concepts FORCE ROW LEVEL SECURITY;

ALTER TABLE okt_repository.concept_words ENABLE ROW LEVEL SECURITY;
ALTER TABLE okt_repository.concept_words FORCE ROW LEVEL SECURITY;
CREATE POLICY repository ON okt_repository.concept_words
    USING (repository_id = okt_repository.current_repository());
