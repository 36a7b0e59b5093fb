//! The two interchange formats, the Decomposition Package of one source and the Graph Bundle of one repository, and how a request
//! that carries one to a registry is signed.

pub mod bundle;
pub mod origin;
pub mod package;
pub mod signing;
