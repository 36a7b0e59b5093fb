//! Every route with its guard.

use okt_http::Guard::{Authenticated, Needs, Probe, Public, Session};
use okt_http::{Routes, route};
use okt_model::{Action, Object, Permission};

use crate::ai_usage::AI_USAGE_READ;
use crate::facts::{FACT_READ, FACT_UPDATE};
use crate::jobs::{JOB_CANCEL, JOB_READ};
use crate::members::{MEMBER_MANAGE, MEMBER_READ};
use crate::promptsets::{PROMPTSET_READ, PROMPTSET_WRITE};
use crate::repositories::{REPOSITORY_DELETE, REPOSITORY_READ, REPOSITORY_UPDATE, REPOSITORY_WRITE};
use crate::settings::REPOSITORY_MANAGE;
use crate::source_providers::{DECOMPOSITION_READ, SOURCE_PROVIDER_EXECUTE, SOURCE_PROVIDER_READ};
use crate::sources::{SOURCE_DELETE, SOURCE_READ, SOURCE_UPDATE, SOURCE_WRITE};
use crate::{
    Api, admin, ai_usage, api_keys, audit, auth, contexts, docs, facts, health, jobs, members, metrics,
    oauth, once, openapi, presets, promptsets, registry, repositories, settings, source_estimates,
    source_files, source_import, source_providers, sources, users,
};

const AUDIT_READ: Permission = Permission::new(Object::Audit, Action::Read);
const ROLE_MANAGE: Permission = Permission::new(Object::Role, Action::Manage);
const ROLE_READ: Permission = Permission::new(Object::Role, Action::Read);
const USER_READ: Permission = Permission::new(Object::User, Action::Read);

/// All routes of the service.
pub fn table(api: &Api) -> Routes<Api> {
    probes(api)
        .at(Public, route!(openapi::show))
        .at(Public, route!(docs::show))
        .at(Public, route!(auth::register))
        .at(Public, route!(auth::login))
        .at(Public, route!(auth::refresh))
        .at(Session, route!(auth::logout))
        .at(Authenticated, route!(users::me))
        .at(Authenticated, route!(users::show))
        .at(Session, route!(users::update))
        .at(Authenticated, route!(users::permissions))
        .at(Session, route!(api_keys::list))
        .at(Session, once(&api.app, route!(api_keys::create)))
        .at(Session, route!(api_keys::revoke))
        .at(Public, route!(oauth::metadata::server))
        .at(Public, route!(oauth::metadata::server_at))
        .at(Public, route!(oauth::metadata::resource))
        .at(Public, route!(oauth::metadata::resource_at))
        .at(Public, route!(oauth::metadata::resource_below))
        .at(Public, route!(oauth::register::create))
        .at(Public, route!(oauth::register::show))
        .at(Public, route!(oauth::register::update))
        .at(Public, route!(oauth::register::delete))
        .at(Public, route!(oauth::authorize::show))
        .at(Public, route!(oauth::authorize::decide))
        .at(Public, route!(oauth::authorize::sign_in))
        .at(Public, route!(oauth::token::issue))
        .at(Public, route!(oauth::token::revoke))
        .at(Session, route!(oauth::grants::list))
        .at(Session, route!(oauth::grants::revoke))
        .at(Needs(USER_READ), route!(admin::users))
        .at(Needs(ROLE_MANAGE), route!(admin::assign_role))
        .at(Needs(ROLE_MANAGE), route!(admin::remove_role))
        .at(Needs(ROLE_READ), route!(admin::permissions))
        .at(Needs(AUDIT_READ), route!(audit::list))
        .at(Needs(JOB_CANCEL), route!(jobs::rescue))
        .at(Needs(JOB_READ), route!(jobs::list))
        .at(Needs(JOB_READ), route!(jobs::stats))
        .at(Needs(JOB_READ), route!(jobs::show))
        .at(Needs(SOURCE_PROVIDER_READ), route!(source_providers::list))
        .at(Needs(DECOMPOSITION_READ), route!(source_providers::decomposition))
        .at(Needs(SOURCE_PROVIDER_EXECUTE), route!(source_providers::classify))
        .at(Needs(SOURCE_PROVIDER_EXECUTE), once(&api.app, route!(source_providers::retrieve)))
        .at(Needs(SOURCE_PROVIDER_EXECUTE), route!(source_providers::search))
        .at(Needs(AI_USAGE_READ), route!(ai_usage::show))
        .at(Needs(PROMPTSET_READ), route!(promptsets::list))
        .at(Needs(PROMPTSET_WRITE), once(&api.app, route!(promptsets::create)))
        .at(Needs(PROMPTSET_READ), route!(promptsets::show))
        .at(Public, route!(presets::list))
        .at(Authenticated, route!(repositories::list))
        .at(Needs(REPOSITORY_WRITE), once(&api.app, route!(repositories::create)))
        .at(Needs(REPOSITORY_READ), route!(repositories::show))
        .at(Needs(REPOSITORY_UPDATE), route!(repositories::update))
        .at(Needs(REPOSITORY_DELETE), route!(repositories::delete))
        .at(Authenticated, route!(repositories::permissions))
        .at(Needs(MEMBER_READ), route!(members::list))
        .at(Needs(MEMBER_MANAGE), route!(members::set))
        .at(Needs(MEMBER_MANAGE), route!(members::remove))
        .at(Needs(AUDIT_READ), route!(audit::list_in))
        .at(Needs(REPOSITORY_MANAGE), route!(settings::show))
        .at(Needs(REPOSITORY_MANAGE), route!(settings::providers))
        .at(Needs(REPOSITORY_MANAGE), route!(settings::auto_contribute))
        .at(Needs(REPOSITORY_MANAGE), route!(settings::registry))
        .at(Needs(REPOSITORY_MANAGE), route!(settings::promptsets))
        .at(Needs(REPOSITORY_MANAGE), route!(settings::budget))
        .at(Needs(REPOSITORY_MANAGE), route!(settings::stages))
        .at(Needs(REPOSITORY_MANAGE), once(&api.app, route!(contexts::create)))
        .at(Needs(REPOSITORY_MANAGE), route!(contexts::update))
        .at(Needs(REPOSITORY_MANAGE), route!(contexts::delete))
        .at(Needs(REPOSITORY_MANAGE), once(&api.app, route!(contexts::migrate)))
        .at(Needs(REPOSITORY_MANAGE), route!(registry::contribute_all))
        .at(Needs(REPOSITORY_MANAGE), route!(registry::pull_all))
        .at(Needs(SOURCE_READ), route!(sources::list))
        .at(Needs(SOURCE_WRITE), once(&api.app, route!(sources::create)))
        .at_streaming(Needs(SOURCE_WRITE), route!(source_files::upload))
        .at_streaming(Needs(SOURCE_WRITE), route!(source_import::import))
        .at(Needs(SOURCE_WRITE), route!(source_estimates::estimate))
        .at(Needs(SOURCE_READ), route!(sources::show))
        .at(Needs(SOURCE_DELETE), route!(sources::delete))
        .at(Needs(SOURCE_UPDATE), once(&api.app, route!(sources::process)))
        .at(Needs(SOURCE_UPDATE), once(&api.app, route!(sources::retry)))
        .at(Needs(SOURCE_READ), route!(facts::list_of_source))
        .at(Needs(SOURCE_READ), route!(sources::references))
        .at(Needs(SOURCE_READ), route!(source_files::image))
        .at(Needs(SOURCE_READ), route!(source_files::body))
        .at(Needs(FACT_READ), route!(facts::list))
        .at(Needs(FACT_READ), route!(facts::show))
        .at(Needs(FACT_UPDATE), route!(facts::judge))
        .at(Needs(FACT_READ), route!(facts::concepts))
        .at(Needs(FACT_READ), route!(facts::similar))
        .at(Needs(AI_USAGE_READ), route!(ai_usage::show_in))
        .at(Needs(JOB_READ), route!(jobs::list_in))
        .at(Needs(JOB_READ), route!(jobs::stats_in))
        .at(Needs(JOB_READ), route!(jobs::show_in))
        .at(Needs(JOB_CANCEL), route!(jobs::cancel))
        .at(Needs(JOB_CANCEL), once(&api.app, route!(jobs::retry)))
        .at(Needs(JOB_READ), route!(jobs::events))
        .at(Needs(JOB_READ), route!(jobs::job_events))
}

/// What every process answers, whatever its role.
pub fn probes(api: &Api) -> Routes<Api> {
    let routes = health(api);
    match api.app.config().server.metrics_addr {
        None => routes.at(Probe, route!(metrics::show)),
        Some(_) => routes,
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
