//! Background jobs: what is asked for happens, once, and says what it is doing.
mod effects;
mod ends;
mod events;
mod listener;
mod losing;
mod queue;
mod routes;
mod seams;
mod tenants;
mod test_queue;
mod upkeep;
