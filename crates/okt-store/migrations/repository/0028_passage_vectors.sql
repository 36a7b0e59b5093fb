-- Which passages (kind 2) have a vector, and in which space. As with concepts, the vector is called by the text that it was made
-- of, and a model that gives no usable vector for a text is noted by the number of its space below zero. The name ends with the
-- number of the passage, so that the row is found by its key.
-- Of a source as a whole (kind 3): the space in which all its passages were given one; below zero where they may cost no more.
ALTER TABLE okt_repository.search_units
    ADD COLUMN vector_id   uuid,
    ADD COLUMN embedded_in smallint;
