//! Processes that are killed in the middle of a delivery: it is made again, under the same id.

use std::time::Duration;

use okt_testkit::jobs::program;
use okt_testkit::process::Process;
use okt_testkit::receiver::{Answering, Receiver};
use okt_testkit::wait::eventually;

use super::{NAME, SUN, app_with, attempts, deliveries, webhook};

#[tokio::test]
async fn a_delivery_outlives_the_process_that_makes_it() {
    let receiver = Receiver::start().await;
    // Nobody works in this process.
    let app = app_with(&receiver, &[]).await;
    let (id, secret) = webhook(&app, &receiver.url("/"), &["source.processed"]).await;
    receiver.answer("/", Answering::Silent);
    let mut settings = app.process_settings();
    settings.extend([("SVC__TASK__HEARTBEAT_INTERVAL", "1s"), ("SVC__TASK__HEARTBEAT_TIMEOUT", "3s")]);
    app.add_text(NAME, SUN).await;
    let mut killed = 0;
    for n in 1..=2 {
        let worker = Process::serve_as(program(), &["--role", "worker"], &settings);
        // It has sent everything, and waits for the answer.
        receiver.await_messages("/", n).await;
        drop(worker);
        killed += 1;
        assert_eq!(attempts(&deliveries(&app, &id).await[0]).len(), 0, "nothing came of it yet");
    }
    receiver.answer("/", Answering::Status(204, String::new()));
    let worker = Process::serve_as(program(), &["--role", "worker"], &settings);
    let told = eventually(Duration::from_mins(3), "it is delivered", async || {
        let all = deliveries(&app, &id).await;
        match all.as_slice() {
            [one] if one["state"] == "delivered" => Ok(one.clone()),
            _ => Err(format!("{all:?}\n{}", worker.log())),
        }
    })
    .await;
    let messages = receiver.messages("/");
    assert_eq!(messages.len(), killed + 1, "once for each process");
    for message in &messages {
        assert!(message.is_signed_with(&secret));
        assert_eq!(message.header("webhook-id"), told["id"].as_str().unwrap());
        assert_eq!(message.body, messages[0].body);
    }
    assert_eq!(attempts(&told).len(), 1, "the others left nothing");
}
