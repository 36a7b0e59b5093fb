//! Every route with its guard.

use okt_auth::Needed;
use okt_auth::permissions::{
    AiUsageRead, AuditRead, ConceptRead, ConceptUpdate, DecompositionRead, FactRead, FactUpdate, GraphExport,
    GraphRead, GraphWrite, InvestigationDelete, InvestigationRead, InvestigationUpdate, InvestigationWrite,
    JobCancel, JobRead, MemberManage, MemberRead, PromptsetRead, PromptsetWrite, ReportDelete, ReportRead,
    ReportUpdate, ReportWrite, RepositoryDelete, RepositoryManage, RepositoryRead, RepositoryUpdate,
    RepositoryWrite, RoleManage, RoleRead, SourceDelete, SourceProviderExecute, SourceProviderRead,
    SourceRead, SourceUpdate, SourceWrite, UserManage, UserRead, WebhookDelete, WebhookExecute, WebhookRead,
    WebhookUpdate, WebhookWrite,
};
use okt_config::Metrics;
use okt_http::Guard::{self, Authenticated, Mcp, Probe, Public, Session};
use okt_http::{Routes, route};

use crate::{
    Api, admin, ai_usage, api_keys, audit, auth, bundles, concepts, contexts, contradictions, curation, docs,
    evidence, exports, facts, graph, health, investigations, invitations, jobs, mcp, members, metrics, oauth,
    once, openapi, presets, promptsets, registry, reports, repositories, search, sessions, settings, setup,
    source_estimates, source_files, source_import, source_marks, source_pages, source_providers,
    source_texts, sources, streams, summaries, users, web, webhooks,
};

/// The guard for a handler that asks for `System<P>` or `Repository<P>`.
const fn needs<P: Needed>() -> Guard {
    Guard::Needs(P::PERMISSION)
}

/// All routes of the service.
#[expect(clippy::too_many_lines, reason = "a line for each route")]
pub fn table(api: &Api) -> Routes<Api> {
    probes(api)
        .at_any_query(Public, route!(openapi::show))
        .at_any_query(Public, route!(docs::show))
        .at(Public, route!(setup::show))
        .at(Public, route!(auth::register))
        .at(Public, route!(auth::login))
        .at(Public, route!(auth::refresh))
        .at(Session, route!(auth::logout))
        .at(Authenticated, route!(users::me))
        .at(Authenticated, route!(users::show))
        .at(Session, route!(users::update))
        .at(Session, route!(sessions::change_password))
        .at(Session, route!(sessions::list))
        .at(Session, route!(sessions::end))
        .at(Authenticated, route!(users::permissions))
        .at(Session, route!(api_keys::list))
        .at(Session, once(&api.app, route!(api_keys::create)))
        .at(Session, route!(api_keys::revoke))
        .at_any_query(Public, route!(oauth::metadata::server))
        .at_any_query(Public, route!(oauth::metadata::server_at))
        .at_any_query(Public, route!(oauth::metadata::resource))
        .at_any_query(Public, route!(oauth::metadata::resource_at))
        .at_any_query(Public, route!(oauth::metadata::resource_below))
        .at_any_query(Public, route!(oauth::register::create))
        .at_any_query(Public, route!(oauth::register::show))
        .at_any_query(Public, route!(oauth::register::update))
        .at_any_query(Public, route!(oauth::register::delete))
        .at_any_query(Public, route!(oauth::authorize::show))
        .at_any_query(Public, route!(oauth::authorize::decide))
        .at_any_query(Public, route!(oauth::authorize::sign_in))
        .at_any_query(Public, route!(oauth::token::issue))
        .at_any_query(Public, route!(oauth::token::revoke))
        .at(Session, route!(oauth::grants::list))
        .at(Session, route!(oauth::grants::revoke))
        .at(needs::<UserRead>(), route!(admin::users))
        .at(needs::<UserManage>(), route!(admin::set_status))
        .at(needs::<RoleManage>(), route!(admin::assign_role))
        .at(needs::<RoleManage>(), route!(admin::remove_role))
        .at(needs::<RoleRead>(), route!(admin::permissions))
        .at(needs::<AuditRead>(), route!(audit::list))
        .at(needs::<JobCancel>(), route!(jobs::rescue))
        .at(needs::<JobRead>(), route!(jobs::list))
        .at(needs::<JobRead>(), route!(jobs::stats))
        .at(needs::<JobRead>(), route!(jobs::show))
        .at(needs::<SourceProviderRead>(), route!(source_providers::list))
        .at(needs::<DecompositionRead>(), route!(source_providers::decomposition))
        .at(needs::<SourceProviderExecute>(), route!(source_providers::classify))
        .at(needs::<SourceProviderExecute>(), once(&api.app, route!(source_providers::retrieve)))
        .at(needs::<SourceProviderExecute>(), route!(source_providers::search))
        .at(needs::<AiUsageRead>(), route!(ai_usage::show))
        .at(needs::<PromptsetRead>(), route!(promptsets::list))
        .at(needs::<PromptsetWrite>(), once(&api.app, route!(promptsets::create)))
        .at(needs::<PromptsetRead>(), route!(promptsets::show))
        .at(Public, route!(presets::list))
        .at(Authenticated, route!(repositories::list))
        .at(needs::<RepositoryWrite>(), once(&api.app, route!(repositories::create)))
        .at(needs::<RepositoryRead>(), route!(repositories::show))
        .at(needs::<RepositoryUpdate>(), route!(repositories::update))
        .at(needs::<RepositoryDelete>(), route!(repositories::delete))
        .at(Authenticated, route!(repositories::permissions))
        .at(needs::<MemberRead>(), route!(members::list))
        .at(needs::<MemberManage>(), route!(members::set))
        .at(needs::<MemberManage>(), route!(members::remove))
        .at(needs::<MemberManage>(), route!(invitations::list))
        .at(needs::<MemberManage>(), once(&api.app, route!(invitations::create)))
        .at(needs::<MemberManage>(), route!(invitations::delete))
        .at(Session, route!(invitations::accept))
        .at_any_query(Public, route!(invitations::page))
        .at(needs::<AuditRead>(), route!(audit::list_in))
        .at(needs::<RepositoryManage>(), route!(settings::show))
        .at(needs::<RepositoryManage>(), route!(settings::providers))
        .at(needs::<RepositoryManage>(), route!(settings::auto_contribute))
        .at(needs::<RepositoryManage>(), route!(settings::registry))
        .at(needs::<RepositoryManage>(), route!(settings::promptsets))
        .at(needs::<RepositoryManage>(), route!(settings::budget))
        .at(needs::<RepositoryManage>(), route!(settings::stages))
        .at(needs::<RepositoryManage>(), route!(settings::contexts))
        .at(needs::<RepositoryManage>(), once(&api.app, route!(contexts::create)))
        .at(needs::<RepositoryManage>(), route!(contexts::update))
        .at(needs::<RepositoryManage>(), route!(contexts::delete))
        .at(needs::<RepositoryManage>(), once(&api.app, route!(contexts::migrate)))
        .at(needs::<RepositoryManage>(), route!(registry::contribute_all))
        .at(needs::<RepositoryManage>(), route!(registry::pull_all))
        .at(needs::<WebhookRead>(), route!(webhooks::list))
        .at(needs::<WebhookWrite>(), once(&api.app, route!(webhooks::create)))
        .at(needs::<WebhookUpdate>(), route!(webhooks::update))
        .at(needs::<WebhookDelete>(), route!(webhooks::delete))
        .at(needs::<WebhookUpdate>(), once(&api.app, route!(webhooks::rotate)))
        .at(needs::<WebhookExecute>(), once(&api.app, route!(webhooks::test)))
        .at(needs::<WebhookRead>(), route!(webhooks::deliveries))
        .at(needs::<SourceRead>(), route!(sources::list))
        .at(needs::<SourceWrite>(), once(&api.app, route!(sources::create)))
        .at_upload(needs::<SourceWrite>(), route!(source_files::upload))
        .at_upload(needs::<SourceWrite>(), route!(source_import::import))
        .at_upload(needs::<SourceUpdate>(), route!(source_marks::import))
        .at(needs::<SourceWrite>(), route!(source_estimates::estimate))
        .at(needs::<SourceWrite>(), route!(source_providers::search_in))
        .at(needs::<SourceRead>(), route!(sources::show))
        .at(needs::<SourceDelete>(), route!(sources::delete))
        .at(needs::<SourceUpdate>(), route!(source_marks::set))
        .at(needs::<SourceUpdate>(), route!(source_marks::remove))
        .at(needs::<SourceUpdate>(), once(&api.app, route!(sources::process)))
        .at(needs::<SourceUpdate>(), once(&api.app, route!(sources::retry)))
        .at(needs::<SourceRead>(), route!(facts::list_of_source))
        .at(needs::<SourceRead>(), route!(sources::references))
        .at(needs::<SourceRead>(), route!(source_pages::show))
        .at_download(needs::<SourceRead>(), route!(source_files::image))
        .at_download(needs::<SourceRead>(), route!(source_files::body))
        .at_download(needs::<SourceRead>(), route!(source_texts::text))
        .at_download(needs::<SourceRead>(), route!(source_texts::markdown))
        .at(needs::<InvestigationRead>(), route!(investigations::list))
        .at(needs::<InvestigationWrite>(), once(&api.app, route!(investigations::create)))
        .at(needs::<InvestigationRead>(), route!(investigations::show))
        .at(needs::<InvestigationUpdate>(), route!(investigations::update))
        .at(needs::<InvestigationDelete>(), route!(investigations::delete))
        .at(needs::<InvestigationRead>(), route!(investigations::sources))
        .at(needs::<InvestigationUpdate>(), once(&api.app, route!(investigations::add)))
        .at(needs::<InvestigationUpdate>(), route!(investigations::remove))
        .at(needs::<InvestigationRead>(), route!(investigations::facts))
        .at(needs::<InvestigationRead>(), route!(investigations::concepts))
        .at(needs::<ReportRead>(), route!(reports::list))
        .at_long(needs::<ReportWrite>(), once(&api.app, route!(reports::create)))
        .at(needs::<ReportRead>(), route!(reports::show))
        .at_long(needs::<ReportUpdate>(), route!(reports::update))
        .at(needs::<ReportDelete>(), route!(reports::delete))
        .at(needs::<ReportUpdate>(), once(&api.app, route!(reports::annotate)))
        .at(needs::<ReportRead>(), route!(reports::sentences))
        .at(needs::<ReportRead>(), route!(reports::annotations))
        .at(needs::<ReportUpdate>(), route!(reports::judge))
        .at(needs::<ReportRead>(), route!(reports::health))
        .at_download(needs::<ReportRead>(), route!(exports::report))
        .at(needs::<FactRead>(), route!(evidence::find))
        .at(needs::<FactRead>(), route!(evidence::check))
        .at_download(needs::<InvestigationRead>(), route!(exports::references))
        .at(needs::<FactRead>(), route!(facts::list))
        .at(needs::<FactRead>(), route!(facts::show))
        .at(needs::<FactUpdate>(), route!(facts::set_status))
        .at(needs::<FactRead>(), route!(facts::group))
        .at(needs::<FactRead>(), route!(facts::concepts))
        .at(needs::<FactRead>(), route!(facts::similar))
        .at(needs::<FactRead>(), route!(contradictions::list))
        .at(needs::<FactUpdate>(), route!(contradictions::mark))
        .at(needs::<FactRead>(), route!(search::search))
        .at(needs::<ConceptRead>(), route!(concepts::list))
        .at(needs::<ConceptRead>(), route!(concepts::show))
        .at(needs::<ConceptRead>(), route!(concepts::facts))
        .at(needs::<ConceptRead>(), route!(concepts::sources))
        .at(needs::<ConceptRead>(), route!(concepts::timeline))
        .at(needs::<ConceptRead>(), route!(concepts::relations))
        .at(needs::<ConceptRead>(), route!(concepts::relation))
        .at(needs::<ConceptRead>(), route!(summaries::list))
        .at(needs::<ConceptRead>(), route!(summaries::definition))
        .at(needs::<ConceptUpdate>(), once(&api.app, route!(summaries::resynthesize)))
        .at(needs::<GraphRead>(), route!(graph::show))
        .at(needs::<GraphRead>(), route!(graph::path))
        .at_download(needs::<GraphExport>(), route!(exports::repository))
        .at(needs::<GraphExport>(), once(&api.app, route!(bundles::export)))
        .at_download(needs::<GraphExport>(), route!(bundles::file))
        .at_upload(needs::<GraphWrite>(), route!(bundles::upload))
        .at(needs::<GraphWrite>(), once(&api.app, route!(bundles::import)))
        .at(needs::<ConceptUpdate>(), route!(curation::reject_link))
        .at(needs::<ConceptUpdate>(), once(&api.app, route!(curation::merge)))
        .at(needs::<ConceptUpdate>(), once(&api.app, route!(curation::split)))
        .at(needs::<ConceptUpdate>(), route!(curation::update))
        .at(needs::<ConceptUpdate>(), once(&api.app, route!(curation::add_alias)))
        .at(needs::<ConceptUpdate>(), route!(curation::remove_alias))
        .at(needs::<ConceptRead>(), route!(curation::list))
        .at(needs::<ConceptUpdate>(), once(&api.app, route!(curation::undo)))
        .at(needs::<AiUsageRead>(), route!(ai_usage::show_in))
        .at(needs::<JobRead>(), route!(jobs::list_in))
        .at(needs::<JobRead>(), route!(jobs::stats_in))
        .at(needs::<JobRead>(), route!(jobs::show_in))
        .at(needs::<JobCancel>(), route!(jobs::cancel))
        .at(needs::<JobCancel>(), once(&api.app, route!(jobs::retry)))
        .at_stream(needs::<JobRead>(), streams::IDLE, route!(jobs::events))
        .at_stream(needs::<JobRead>(), streams::IDLE, route!(jobs::job_events))
        .at_stream(Mcp, mcp::IDLE, route!(mcp::call))
        .files("", web::files(api.app.config().oauth.issuer.as_ref()))
}

/// What every process answers, whatever its role.
pub fn probes(api: &Api) -> Routes<Api> {
    let routes = health(api);
    match api.app.config().metrics() {
        Metrics::Main => routes.at(Probe, route!(metrics::show)),
        Metrics::At(_) | Metrics::Nowhere => routes,
    }
}

/// What the listener for metrics answers, where there is one.
pub fn metrics_probes(api: &Api) -> Routes<Api> {
    health(api).at(Probe, route!(metrics::show))
}

fn health(api: &Api) -> Routes<Api> {
    Routes::new(api.clone(), api.edge(), openapi::document())
        .at(Probe, route!(health::live))
        .at(Probe, route!(health::ready))
}
