-- What a bundle said of the original of a source that was imported without it: so it is told from others, and handed on.
ALTER TABLE okt_repository.sources
    ADD COLUMN stated_sha256 bytea CHECK (length(stated_sha256) = 32),
    ADD COLUMN stated_body   boolean NOT NULL DEFAULT false;
