//! The two interchange formats: the Decomposition Package of one source and the Graph Bundle of one repository.

pub mod bundle;
pub mod package;
