-- What was said elsewhere of two facts, and came with a bundle, has nobody here who said it.
ALTER TABLE okt_repository.contradiction_states ALTER COLUMN person DROP NOT NULL;
