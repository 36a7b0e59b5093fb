//! Logs, metrics and traces of a serving process.

use std::fmt;
use std::io::IsTerminal;

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
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt;

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
    pub(crate) fn start(config: &Config) -> anyhow::Result<Self> {
        let traces = traces(config)?;
        let colours = std::io::stderr().is_terminal();
        let logs = tracing_subscriber::fmt::layer().with_writer(std::io::stderr).with_ansi(colours);
        let logs = match config.log.format {
            LogFormat::Pretty => logs.with_target(false).map_event_format(OfRequest::Pretty).boxed(),
            LogFormat::Json => {
                let logs = logs.json().flatten_event(true).with_current_span(true).with_span_list(false);
                logs.map_event_format(OfRequest::Json).boxed()
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
            .context("can't start logging")?;
        std::panic::set_hook(Box::new(log_panic));
        Ok(Self { metrics: metrics()?, traces })
    }

    /// Sends what is left; best effort, because a collector that is away must not hold up the end.
    pub(crate) fn stop(self) {
        if let Some(Err(error)) = self.traces.map(|provider| provider.shutdown()) {
            tracing::warn!(%error, "the last traces could not be sent");
        }
    }
}

/// Puts the request that a line belongs to into the line. A span would do so too, but costs every request what only
/// those need that something is logged of.
enum OfRequest<F> {
    Pretty(F),
    Json(F),
}

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
        let (Self::Pretty(format) | Self::Json(format)) = self;
        let Some(request) = okt_http::current_request() else {
            return format.format_event(context, writer, event);
        };
        let (id, method, route) = (request.id(), request.method(), request.route());
        match self {
            Self::Pretty(_) => {
                write!(writer, "[{id} {method} {route}] ")?;
                format.format_event(context, writer, event)
            }
            Self::Json(_) => {
                let mut line = String::new();
                format.format_event(context, Writer::new(&mut line), event)?;
                // None of the three can hold a quote: an id is plain, and the others are our own words.
                let rest = line.strip_prefix('{').unwrap_or(&line);
                let request =
                    format!("\"request.id\":\"{id}\",\"method\":\"{method}\",\"route\":\"{route}\"");
                write!(writer, "{{{request},{rest}")
            }
        }
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
    PrometheusBuilder::new()
        .set_buckets_for_metric(Matcher::Suffix("_seconds".to_owned()), SECONDS)
        .and_then(PrometheusBuilder::install_recorder)
        .context("can't start metrics")
}

fn traces(config: &Config) -> anyhow::Result<Option<SdkTracerProvider>> {
    let Some(endpoint) = &config.telemetry.otlp_endpoint else {
        return Ok(None);
    };
    let exporter = SpanExporter::builder()
        .with_http()
        .with_endpoint(format!("{}/v1/traces", endpoint.as_str().trim_end_matches('/')))
        .build()
        .context("telemetry.otlp_endpoint: can't start the exporter")?;
    let resource = Resource::builder().with_service_name(config.telemetry.service_name.clone()).build();
    Ok(Some(SdkTracerProvider::builder().with_batch_exporter(exporter).with_resource(resource).build()))
}
