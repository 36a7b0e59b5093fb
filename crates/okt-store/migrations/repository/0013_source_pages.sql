-- How large the pages of a PDF are, so that a sentence can be drawn on its page: [{number, width, height, rotation}, ...].
-- Empty for what is no PDF, and for what was read before this was kept. A constant default rewrites no row.
ALTER TABLE okt_repository.source_texts ADD COLUMN pages text NOT NULL DEFAULT '[]';
