//! Logs, metrics and traces of a serving process.

use std::fmt;
use std::fs::File;
use std::io::IsTerminal;
use std::sync::Arc;

use anyhow::Context;
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use okt_config::{Config, LogFormat, LogLevel};
use opentelemetry::trace::TracerProvider;
use opentelemetry_otlp::{SpanExporter, WithExportConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::SdkTracerProvider;
use tracing::{Event, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::{FormatTime, SystemTime};
use tracing_subscriber::fmt::writer::BoxMakeWriter;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt;

use crate::version::{COMMIT, VERSION};

/// Libraries that write headers, frames or statements with values at their finest levels. What they know may be
/// secret, so `trace` means ours, not theirs.
const TALKATIVE: &[&str] =
    &["h2", "hyper", "hyper_util", "reqwest", "rustls", "sqlx", "tower", "opentelemetry"];

/// Flushes what is still to be sent when the process ends.
pub(crate) struct Telemetry {
    pub(crate) metrics: PrometheusHandle,
    traces: Option<SdkTracerProvider>,
}

impl Telemetry {
    /// Logs go to standard error, or to a file where somebody reads something else there.
    pub(crate) fn start(config: &Config, file: Option<File>) -> anyhow::Result<Self> {
        let traces = traces(config)?;
        let colours = file.is_none() && std::io::stderr().is_terminal();
        let writer = match file {
            Some(file) => BoxMakeWriter::new(Arc::new(file)),
            None => BoxMakeWriter::new(std::io::stderr),
        };
        let logs = tracing_subscriber::fmt::layer().with_writer(writer).with_ansi(colours);
        let logs = match config.log.format {
            LogFormat::Pretty => logs.with_target(false).with_timer(TimeAndRequest).boxed(),
            LogFormat::Json => {
                let logs = logs.json().flatten_event(true).with_current_span(true).with_span_list(false);
                logs.map_event_format(OfRequest).boxed()
            }
        };
        let exported = traces.as_ref().map(|provider| {
            // Spans are for following a request, whatever the logs are set to.
            tracing_opentelemetry::layer()
                .with_tracer(provider.tracer("okt"))
                .with_filter(filter(LevelFilter::DEBUG))
        });
        tracing_subscriber::registry()
            .with(logs.with_filter(filter(level(config.log.level))))
            .with(exported)
            .try_init()
            .context("cannot start logging")?;
        std::panic::set_hook(Box::new(log_panic));
        Ok(Self { metrics: metrics()?, traces })
    }

    /// Sends what is left; best effort, because a collector that is away must not hold up the end.
    pub(crate) fn stop(self) {
        if let Some(Err(error)) = self.traces.map(|provider| provider.shutdown()) {
            tracing::warn!(%error, "failed to export the last traces");
        }
    }
}

/// The time of a line, and the request that it belongs to. A span would name that too, but costs every request what only
/// those need that something is logged of.
struct TimeAndRequest;

impl FormatTime for TimeAndRequest {
    fn format_time(&self, writer: &mut Writer<'_>) -> fmt::Result {
        SystemTime.format_time(writer)?;
        match okt_http::current_request() {
            Some(request) => write!(writer, " [{} {} {}]", request.id(), request.method(), request.route()),
            None => Ok(()),
        }
    }
}

/// The same for a line of JSON.
struct OfRequest<F>(F);

impl<S, N, F> FormatEvent<S, N> for OfRequest<F>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
    F: FormatEvent<S, N>,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let Some(request) = okt_http::current_request() else {
            return self.0.format_event(context, writer, event);
        };
        let (id, method, route) = (request.id(), request.method(), request.route());
        let mut line = String::new();
        self.0.format_event(context, Writer::new(&mut line), event)?;
        // None of the three can hold a quote: an id is plain, and the others are our own words.
        let rest = line.strip_prefix('{').unwrap_or(&line);
        write!(writer, "{{\"request.id\":\"{id}\",\"method\":\"{method}\",\"route\":\"{route}\",{rest}")
    }
}

/// One line in the log's own format; the standard hook would write a page of plain text into it.
fn log_panic(info: &std::panic::PanicHookInfo<'_>) {
    let message = info.payload_as_str().unwrap_or("no message");
    let place = info.location().map_or_else(String::new, ToString::to_string);
    tracing::error!(message, place, "panicked");
}

fn filter(level: LevelFilter) -> Targets {
    let talkative = level.min(LevelFilter::INFO);
    Targets::new().with_default(level).with_targets(TALKATIVE.iter().map(|name| (*name, talkative)))
}

const fn level(level: LogLevel) -> LevelFilter {
    match level {
        LogLevel::Error => LevelFilter::ERROR,
        LogLevel::Warn => LevelFilter::WARN,
        LogLevel::Info => LevelFilter::INFO,
        LogLevel::Debug => LevelFilter::DEBUG,
        LogLevel::Trace => LevelFilter::TRACE,
    }
}

fn metrics() -> anyhow::Result<PrometheusHandle> {
    const SECONDS: &[f64] = &[0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0];
    let handle = PrometheusBuilder::new()
        .set_buckets_for_metric(Matcher::Suffix("_seconds".to_owned()), SECONDS)
        .and_then(PrometheusBuilder::install_recorder)
        .context("cannot start metrics")?;
    for (describe, name, help) in FAMILIES {
        match describe {
            Kind::Counter => metrics::describe_counter!(*name, *help),
            Kind::Gauge => metrics::describe_gauge!(*name, *help),
            Kind::Histogram => metrics::describe_histogram!(*name, *help),
        }
    }
    metrics::gauge!("okt_build_info", "version" => VERSION, "commit" => COMMIT).set(1);
    Ok(handle)
}

enum Kind {
    Counter,
    Gauge,
    Histogram,
}

/// What every family that is counted in this process means. Those that are read when somebody asks are in `okt-api`.
const FAMILIES: &[(Kind, &str, &str)] = &[
    (Kind::Gauge, "okt_build_info", "Build information; always 1"),
    (Kind::Counter, "okt_http_requests_total", "Requests answered"),
    (Kind::Histogram, "okt_http_request_duration_seconds", "Time until the response headers"),
    (
        Kind::Counter,
        "okt_http_shed_total",
        "Requests refused with 503 at a limit: requests in flight, bodies and files being received, bytes of unread answers",
    ),
    (Kind::Gauge, "okt_jobs_running", "Jobs that this process runs"),
    (Kind::Gauge, "okt_jobs_stuck", "Threads of this process lost to jobs that never yield"),
    (Kind::Counter, "okt_jobs_settled_total", "Jobs whose outcome this process recorded"),
    (Kind::Counter, "okt_jobs_refused_total", "Outcomes dropped because another worker had claimed the job"),
    (Kind::Counter, "okt_jobs_rescued_total", "Jobs of dead workers that this process released"),
    (Kind::Gauge, "okt_event_streams", "Event streams that are open"),
    (Kind::Gauge, "okt_database_connections", "Open connections of a pool"),
    (Kind::Gauge, "okt_database_connections_idle", "Idle connections of a pool"),
    (Kind::Gauge, "okt_database_connections_limit", "Most connections a pool may hold"),
    (Kind::Counter, "okt_model_calls_total", "Answered calls to models, by outcome"),
    (Kind::Counter, "okt_model_failures_total", "Calls to models without an answer"),
    (Kind::Counter, "okt_model_retries_total", "Requests to models that failed and were sent again"),
    (Kind::Counter, "okt_model_input_tokens_total", "Tokens sent to models"),
    (Kind::Counter, "okt_model_output_tokens_total", "Tokens generated by models"),
    (
        Kind::Counter,
        "okt_model_cost_microdollars_total",
        "Cost of calls to models in millionths of a US dollar",
    ),
];

fn traces(config: &Config) -> anyhow::Result<Option<SdkTracerProvider>> {
    let Some(endpoint) = &config.telemetry.otlp_endpoint else {
        return Ok(None);
    };
    let exporter = SpanExporter::builder()
        .with_http()
        .with_endpoint(format!("{}/v1/traces", endpoint.as_str().trim_end_matches('/')))
        .build()
        .context("telemetry.otlp_endpoint: cannot start the exporter")?;
    let resource = Resource::builder().with_service_name(config.telemetry.service_name.clone()).build();
    Ok(Some(SdkTracerProvider::builder().with_batch_exporter(exporter).with_resource(resource).build()))
}
