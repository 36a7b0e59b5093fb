-- What stood before each text that was turned into a vector: with another prefix the vectors are others.
ALTER TABLE okt_system.embedding_spaces ADD COLUMN passage_prefix text NOT NULL DEFAULT '';
