//! Clients and the pages on which people let them in.

mod pages;
