//! Background jobs on PostgreSQL: from the note of a job to its effect.
//!
//! It knows no job by name, nor what one does. [`Worker`] runs the kinds it is given; [`jobs`] is what people may ask of
//! a job; [`Changes`] tells when to look again. To add a kind of job, see `okt-jobs`.
//!
//! The promises, and where they are kept: a job is queued if and only if the transaction that wanted it was committed
//! (`relay`); only the process that claimed it last may say what became of it (`settle`); its effect happens once,
//! however often it runs (`context`); a process that dies gives its jobs back (`rescue`); tenants take turns (`enqueue`).

mod backoff;
mod changes;
mod claim;
mod claiming;
mod context;
mod enqueue;
mod heartbeat;
pub mod jobs;
mod json;
mod keeping;
mod kinds;
mod minder;
mod order;
mod relay;
mod rescue;
mod schedule;
mod settle;
mod slots;
mod sweep;
mod worker;
mod workers;

pub use changes::{Change, Changes, Subscription};
pub use context::{Effect, Finished, JobContext, JobError, SystemContext};
pub use enqueue::enqueue;
pub use kinds::Kinds;
pub use schedule::Periodic;
pub use worker::{Settings, Worker};
