//! Background jobs: what is asked for happens, once, and says what it is doing.

mod effects;
mod ends;
mod queue;
mod shop;
mod upkeep;
