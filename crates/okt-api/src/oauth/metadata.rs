//! What clients read first: where everything is, and who gives out tokens for what.

use okt_app::oauth::resources;
use okt_http::{Json, Path, Problem};
use okt_model::Error;
use serde::Serialize;
use url::Url;
use utoipa::ToSchema;

use crate::extract::Issuer;

/// The authorization server (RFC 8414).
#[derive(Serialize, ToSchema)]
pub struct ServerMetadata {
    #[schema(example = "https://okt.example")]
    issuer: String,
    #[schema(example = "https://okt.example/api/v1/oauth/authorize")]
    authorization_endpoint: String,
    #[schema(example = "https://okt.example/api/v1/oauth/token")]
    token_endpoint: String,
    #[schema(example = "https://okt.example/api/v1/oauth/register")]
    registration_endpoint: String,
    #[schema(example = "https://okt.example/api/v1/oauth/revoke")]
    revocation_endpoint: String,
    #[schema(value_type = Vec<String>, example = json!(["code"]))]
    response_types_supported: [&'static str; 1],
    #[schema(value_type = Vec<String>, example = json!(["query"]))]
    response_modes_supported: [&'static str; 1],
    #[schema(value_type = Vec<String>, example = json!(["authorization_code", "refresh_token"]))]
    grant_types_supported: [&'static str; 2],
    #[schema(value_type = Vec<String>, example = json!(["S256"]))]
    code_challenge_methods_supported: [&'static str; 1],
    #[schema(value_type = Vec<String>, example = json!(["none", "client_secret_basic", "client_secret_post"]))]
    token_endpoint_auth_methods_supported: [&'static str; 3],
    #[schema(value_type = Vec<String>, example = json!(["none", "client_secret_basic", "client_secret_post"]))]
    revocation_endpoint_auth_methods_supported: [&'static str; 3],
    #[schema(value_type = Vec<String>, example = json!(["mcp", "read"]))]
    scopes_supported: Vec<String>,
    /// Answers carry `iss` (RFC 9207).
    authorization_response_iss_parameter_supported: bool,
    /// A client's id may be the address of a document about it.
    client_id_metadata_document_supported: bool,
    #[schema(example = "https://okt.example/api/docs")]
    service_documentation: String,
}

/// What tokens are for (RFC 9728).
#[derive(Serialize, ToSchema)]
pub struct ResourceMetadata {
    #[schema(example = "https://okt.example/mcp")]
    resource: String,
    #[schema(value_type = Vec<String>, example = json!(["https://okt.example"]))]
    authorization_servers: [String; 1],
    #[schema(value_type = Vec<String>, example = json!(["mcp", "read"]))]
    scopes_supported: Vec<String>,
    #[schema(value_type = Vec<String>, example = json!(["header"]))]
    bearer_methods_supported: [&'static str; 1],
    #[schema(example = "okt")]
    resource_name: &'static str,
    #[schema(example = "https://okt.example/api/docs")]
    resource_documentation: String,
}

/// Metadata of the authorization server.
#[utoipa::path(get, path = "/.well-known/oauth-authorization-server", tag = "Discovery",
    operation_id = "getAuthorizationServer",
    responses((status = 200, body = ServerMetadata, description = "RFC 8414")))]
pub async fn server(Issuer(issuer): Issuer) -> Json<ServerMetadata> {
    Json(server_metadata(issuer))
}

/// Metadata of the authorization server, where its address has a path.
#[utoipa::path(get, path = "/.well-known/oauth-authorization-server/{path}", tag = "Discovery",
    operation_id = "getAuthorizationServerByPath",
    params(("path" = String, Path, description = "The path of `oauth.issuer`")),
    responses((status = 200, body = ServerMetadata, description = "RFC 8414")))]
pub async fn server_at(
    Issuer(issuer): Issuer,
    Path(path): Path<String>,
) -> Result<Json<ServerMetadata>, Problem> {
    let own = Url::parse(&issuer).map_err(Error::internal)?;
    if own.path().trim_matches('/') != path {
        return Err(Error::NotFound("authorization server").into());
    }
    Ok(Json(server_metadata(issuer)))
}

/// Metadata of the service as a resource.
#[utoipa::path(get, path = "/.well-known/oauth-protected-resource", tag = "Discovery",
    operation_id = "getProtectedResource",
    responses((status = 200, body = ResourceMetadata, description = "RFC 9728")))]
pub async fn resource(Issuer(issuer): Issuer) -> Json<ResourceMetadata> {
    Json(resource_document(&issuer, issuer.clone()))
}

/// Metadata of one resource of the service, by its path.
#[utoipa::path(get, path = "/.well-known/oauth-protected-resource/{path}", tag = "Discovery",
    operation_id = "getProtectedResourceByPath",
    params(("path" = String, Path, description = "The path of the resource", example = "mcp")),
    responses((status = 200, body = ResourceMetadata, description = "RFC 9728")))]
pub async fn resource_at(
    Issuer(issuer): Issuer,
    Path(path): Path<String>,
) -> Result<Json<ResourceMetadata>, Problem> {
    Ok(Json(resource_by_path(&issuer, &path)?))
}

/// Metadata of one resource of the service, by its path of two parts.
#[utoipa::path(get, path = "/.well-known/oauth-protected-resource/{path}/{rest}", tag = "Discovery",
    operation_id = "getProtectedResourceBelowPath",
    params(("path" = String, Path, description = "The path of `oauth.issuer`"),
           ("rest" = String, Path, description = "The path of the resource", example = "mcp")),
    responses((status = 200, body = ResourceMetadata, description = "RFC 9728")))]
pub async fn resource_below(
    Issuer(issuer): Issuer,
    Path((path, rest)): Path<(String, String)>,
) -> Result<Json<ResourceMetadata>, Problem> {
    Ok(Json(resource_by_path(&issuer, &format!("{path}/{rest}"))?))
}

/// Where a client finds out how to get a token for one of the resources.
pub(crate) fn resource_metadata(resource: &str) -> String {
    match Url::parse(resource) {
        Ok(url) => {
            let path = url.path().trim_end_matches('/');
            format!("{}/.well-known/oauth-protected-resource{path}", url.origin().ascii_serialization())
        }
        Err(_) => String::new(),
    }
}

fn server_metadata(issuer: String) -> ServerMetadata {
    const METHODS: [&str; 3] = ["none", "client_secret_basic", "client_secret_post"];
    let at = |path: &str| format!("{issuer}/api/v1/oauth/{path}");
    ServerMetadata {
        authorization_endpoint: at("authorize"),
        token_endpoint: at("token"),
        registration_endpoint: at("register"),
        revocation_endpoint: at("revoke"),
        response_types_supported: ["code"],
        response_modes_supported: ["query"],
        grant_types_supported: ["authorization_code", "refresh_token"],
        code_challenge_methods_supported: ["S256"],
        token_endpoint_auth_methods_supported: METHODS,
        revocation_endpoint_auth_methods_supported: METHODS,
        scopes_supported: scopes(),
        authorization_response_iss_parameter_supported: true,
        client_id_metadata_document_supported: true,
        service_documentation: format!("{issuer}/api/docs"),
        issuer,
    }
}

fn resource_by_path(issuer: &str, path: &str) -> Result<ResourceMetadata, Error> {
    let found = resources(issuer).into_iter().find(|resource| {
        Url::parse(resource).is_ok_and(|url| !path.is_empty() && url.path().trim_matches('/') == path)
    });
    Ok(resource_document(issuer, found.ok_or(Error::NotFound("resource"))?))
}

fn resource_document(issuer: &str, resource: String) -> ResourceMetadata {
    ResourceMetadata {
        resource,
        authorization_servers: [issuer.to_owned()],
        scopes_supported: scopes(),
        bearer_methods_supported: ["header"],
        resource_name: "okt",
        resource_documentation: format!("{issuer}/api/docs"),
    }
}

/// What is worth asking for first. More is asked for when a tool needs it: some clients ask for whatever is listed.
fn scopes() -> Vec<String> {
    ["mcp", "read"].map(str::to_owned).into()
}
