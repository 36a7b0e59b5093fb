//! Shared furniture of HTTP: the route table and its gate, problems, paging, limits, request ids, the server.
//!
//! It must not know who may do what (that is behind the [`Gate`] trait) nor what any route is for. A new kind of
//! refusal is a line in `problem.rs`; a new limit is a step in `edge.rs`.

mod address;
mod body;
mod cursor;
mod edge;
mod extract;
mod observe;
mod page;
mod problem;
mod rate;
mod routes;
mod server;
mod threads;
mod upload;

pub use address::{ClientAddress, ServerAddress};
pub use edge::{Edge, Principal, Ticket};
pub use extract::{Form, Json, Path, Query};
pub use observe::{RequestId, current_request, current_request_id};
pub use page::{Page, PageRequest};
pub use problem::{Code, Problem, ProblemBody};
pub use rate::Limit;
pub use routes::{Gate, Guard, Line, Routes, Served, problem_response};
pub use server::serve;
pub use threads::Threads;
pub use upload::{Part, Upload};
pub use utoipa_axum::routes as route;
