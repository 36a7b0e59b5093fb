//! Tokens of clients: how they are had, what they are good for, and how they end.

mod access;
