-- Which concepts have a vector, and in which space. The vector is called by the text that it was made of, so a concept that is
-- described otherwise by now has another one, and whoever finds it there need not pay for it. A model that gives no usable
-- vector for a text is noted by the number of its space below zero.
ALTER TABLE okt_repository.concepts
    ADD COLUMN vector_id   uuid,
    ADD COLUMN embedded_in smallint;
-- squawk-ignore require-concurrent-index-creation
CREATE INDEX concepts_vector_idx ON okt_repository.concepts (repository_id, vector_id) WHERE vector_id IS NOT NULL;
