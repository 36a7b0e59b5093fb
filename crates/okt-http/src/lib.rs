//! What every HTTP service shares: the route table and its gate, problems, paging, limits, request ids, the server.
//!
//! It must not know who may do what (that is behind the [`Gate`] trait) nor what any route is for. A new kind of
//! refusal is a line in `problem.rs`; a new limit is a step in `admission.rs`.

mod address;
mod admission;
mod body;
mod cursor;
mod describe;
mod edge;
mod examples;
mod extract;
mod fields;
mod files;
mod observe;
mod page;
mod problem;
mod query;
mod rate;
mod recheck;
mod routes;
mod sending;
mod server;
mod shares;
mod stall;
mod streaming;
mod upload;

pub use address::{ClientAddress, ServerAddress, is_local};
pub use edge::{Detached, Edge, Principal, WellFormed};
pub use extract::{Form, Json, Path, Query};
pub use files::{EntryPage, StaticFile, StaticFiles};
pub use observe::{RequestId, current_request, current_request_id};
pub use page::{Page, PageRequest};
pub use problem::{Code, Problem, ProblemBody};
pub use rate::Limit;
pub use routes::{Gate, Guard, Line, LineKind, Routes, Served};
pub use sending::{Budget, Reserved};
pub use server::serve;
pub use streaming::StreamRules;
pub use upload::{BundleUpload, Part, RawUpload, Upload};
pub use utoipa_axum::routes as route;
