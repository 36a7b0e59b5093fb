//! Background jobs on PostgreSQL: from the outbox entry of a job to its commit.
//!
//! It knows no job by name, nor what one does. [`Worker`] runs the kinds it is given; [`jobs`] is what people may ask of
//! a job; [`Changes`] tells when to look again. To add a kind of job, see `okt-jobs`.
//!
//! The promises, and where they are kept: a job is queued if and only if the transaction that wanted it was committed
//! (`relay`); only the worker with the latest fencing token may record its outcome (`outcome`); it commits once, however
//! often it runs (`context`); the jobs of a worker that dies are released (`rescue`); tenants are queued fairly
//! (`enqueue`).

mod backlog;
mod backoff;
mod changes;
mod claim_query;
mod claimer;
mod context;
pub mod ended;
mod enqueue;
mod heartbeat;
mod job_tree;
pub mod jobs;
mod json;
mod kinds;
mod maintenance;
mod outcome;
mod relay;
mod rescue;
mod schedule;
mod slots;
mod subject_jobs;
mod supervisor;
mod sweep;
mod worker;
mod worker_loops;
mod worker_registration;

pub use backlog::{Backlog, backlog};
pub use changes::{Change, Changes, Subscription};
pub use context::{Finished, JobCommit, JobContext, JobError, SystemContext};
pub use enqueue::enqueue;
pub use job_tree::{active_sources, job_tree, unqueued_successors};
pub use kinds::Kinds;
pub use schedule::Periodic;
pub use subject_jobs::{ActiveJobs, count_active_about, list_about};
pub use worker::{Settings, Worker};
