//! The Decomposition Package of one source.
