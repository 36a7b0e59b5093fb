//! Jobs as server-sent events, and what follows from them. How a stream lives and ends is the table's, see `Routes::at_stream`.

use std::convert::Infallible;
use std::fmt::Write;
use std::time::Duration;

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use http::{HeaderMap, header};
use okt_app::{JobEvent, JobWatch};
use okt_wire::jobs::JobView;
use okt_wire::reports::HealthChangedView;

/// How long jobs may be silent. As long as any stream lives: it is normal that nothing happens.
pub(crate) const IDLE: Duration = Duration::from_mins(15);

/// The answer that tells what `watch` sees.
pub(crate) fn answer(watch: JobWatch) -> Response {
    let events = stream::unfold(watch, |mut watch| async move {
        loop {
            if watch.is_over() {
                return None;
            }
            watch.changed().await;
            // Boxed, because a stream that waits has no use for the memory.
            let text = text_of(Box::pin(watch.poll()).await);
            if !text.is_empty() {
                return Some((Ok::<_, Infallible>(text), watch));
            }
        }
    });
    ([(header::CONTENT_TYPE, "text/event-stream")], Body::from_stream(events)).into_response()
}

/// The id of the last event that a client has received.
pub(crate) fn last_event_id(headers: &HeaderMap) -> Option<&str> {
    headers.get("last-event-id").and_then(|value| value.to_str().ok())
}

fn text_of(events: Vec<JobEvent>) -> String {
    let mut text = String::new();
    for event in events {
        // Before the job and without an id of its own: whoever loses the connection between the two hears of both again.
        let health = event.job.as_ref().and_then(HealthChangedView::of);
        if let Some(health) = health.and_then(|health| serde_json::to_string(&health).ok()) {
            let _ = writeln!(text, "event: report.health_changed\ndata: {health}\n");
        }
        let _ = writeln!(text, "id: {}", event.id);
        let job = event.job.and_then(|job| serde_json::to_string(&JobView::from(job)).ok());
        if let Some(job) = job {
            let _ = writeln!(text, "event: job\ndata: {job}");
        }
        text.push('\n');
    }
    text
}
