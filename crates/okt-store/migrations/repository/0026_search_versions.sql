-- Of a source as a whole (kind 3): by which version of the words it and all its texts were read, 0 for none, and in which
-- language. What was read by another version, or before there was one, is read again.
ALTER TABLE okt_repository.search_units
    ADD COLUMN version  smallint NOT NULL DEFAULT 0,
    ADD COLUMN language text;
