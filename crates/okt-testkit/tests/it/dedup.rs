//! One idea is one fact with all its sources, and a contradiction stays visible.

mod away;
mod changing;
mod confirmed;
mod eval;
mod judged;
mod kills;
mod leftovers;
mod merging;
mod planted;
mod planted_facts;
mod races;
mod recheck;
mod routes;
mod similar;
pub(crate) mod stored_facts;
mod through;
mod undoing;
mod waiting;
