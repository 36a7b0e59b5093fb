//! Qdrant over gRPC: a space is a collection, shared by all tenants.
//!
//! Three things keep tenants apart, and each has to hold alone: the id of a point is made of its repository's and its
//! own; everything that is asked for names the repository; and of what comes back only what bears its name is taken.

use std::collections::HashMap;
use std::future::Future;
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use okt_model::{Error, Result};
use qdrant_client::QdrantError;
use qdrant_client::qdrant::value::Kind;
use qdrant_client::qdrant::vectors_config::Config;
use qdrant_client::qdrant::{
    CollectionInfo, Condition, CountPointsBuilder, CreateCollectionBuilder,
    CreateFieldIndexCollectionBuilder, DeletePointsBuilder, Distance, FieldType, Filter,
    HnswConfigDiffBuilder, KeywordIndexParamsBuilder, PointStruct, Query, QueryBatchPointsBuilder,
    QueryPoints, QueryPointsBuilder, RetrievedPoint, ScrollPointsBuilder, UpsertPointsBuilder, Value,
    VectorInput, VectorParams, VectorParamsBuilder,
};
use uuid::Uuid;

use crate::store::{Near, Point, Space, Tenant, VectorStore};

const SERVICE: &str = "the vector store";

/// How long it may take to answer.
const PATIENCE: Duration = Duration::from_secs(15);
const CONNECT: Duration = Duration::from_secs(3);

/// Of a point: its repository, and its id there.
const REPOSITORY: &str = "repo";
const ID: &str = "id";

/// Edges of a point in the graph of its tenant. There is no graph of all tenants, which would be searched in vain.
const EDGES: u64 = 16;

/// Codes of gRPC.
const NOT_FOUND: i32 = 5;
const PERMISSION_DENIED: i32 = 7;
const UNAUTHENTICATED: i32 = 16;
/// Those that say that asking again is in vain: something in the question is wrong.
const OUR_FAULT: [i32; 5] = [3, 6, 9, 11, 12];

/// How many ids go out at once.
const IDS: usize = 1_000;

/// Cheap to clone.
#[derive(Clone)]
pub struct Qdrant {
    client: qdrant_client::Qdrant,
    patience: Duration,
}

impl Qdrant {
    /// Connects when it is first used.
    pub fn new(config: &okt_config::VectorStore) -> Result<Self> {
        Self::with_patience(config, PATIENCE)
    }

    /// As [`Self::new`], with another time in which every call has to be answered.
    pub fn with_patience(config: &okt_config::VectorStore, patience: Duration) -> Result<Self> {
        // An address may be given for one that is reached by TLS.
        let host =
            if config.host.contains("://") { config.host.clone() } else { format!("http://{}", config.host) };
        let key = config.api_key.expose();
        // The client would repeat one that it can't send.
        if !key.chars().all(|c| c.is_ascii_graphic()) {
            return Err(Error::Operator(
                "providers.vector_store.api_key contains characters that are not allowed in a header"
                    .to_owned(),
            ));
        }
        let mut builder = qdrant_client::Qdrant::from_url(&format!("{host}:{}", config.port))
            .timeout(patience)
            .connect_timeout(patience.min(CONNECT))
            .skip_compatibility_check();
        if !key.is_empty() {
            builder.set_api_key(key);
        }
        let client = builder.build().map_err(|_| {
            Error::Operator("providers.vector_store.host and port do not form a valid address".to_owned())
        })?;
        Ok(Self { client, patience })
    }

    /// `None` when the collection is not there.
    async fn ask<T>(&self, answer: impl Future<Output = Result<T, QdrantError>>) -> Result<Option<T>> {
        // The client tries some calls twice, so its own limit is not enough.
        match tokio::time::timeout(self.patience, answer).await {
            Ok(Ok(answer)) => Ok(Some(answer)),
            Ok(Err(error)) if code(&error) == Some(NOT_FOUND) => Ok(None),
            Ok(Err(error)) => Err(from_qdrant(error)),
            Err(elapsed) => Err(Error::Unavailable { service: SERVICE, cause: Box::new(elapsed) }),
        }
    }

    async fn prepare(&self, space: &Space, recreate: bool) -> Result<bool> {
        let name = &space.name;
        let found = self.collection_info(name).await?;
        let recreated = found.is_some();
        if let Some(found) = found {
            if fits(&found, space) {
                self.index_tenants(name).await?;
                return Ok(false);
            }
            if !recreate {
                return Err(Error::Operator(format!(
                    "the collection {name} of the vector store holds {}, but vectors of {} dimensions with cosine \
                     distance are configured. Set providers.vector_store.allow_recreate to delete and recreate it, or \
                     switch to another one with `okt reembed`",
                    about(&found),
                    space.dimensions,
                )));
            }
            tracing::warn!(
                collection = name,
                "deleting and recreating a collection with other dimensions or distance"
            );
            self.ask(self.client.delete_collection(name)).await?;
        }
        let vectors = VectorParamsBuilder::new(u64::from(space.dimensions), Distance::Cosine).on_disk(true);
        let graphs = HnswConfigDiffBuilder::default().m(0).payload_m(EDGES);
        let make = CreateCollectionBuilder::new(name).vectors_config(vectors).hnsw_config(graphs);
        if let Err(error) = self.ask(self.client.create_collection(make).boxed()).await {
            // Another process may have been faster.
            match self.collection_info(name).await? {
                Some(found) if fits(&found, space) => {}
                _ => return Err(error),
            }
        }
        self.index_tenants(name).await?;
        Ok(recreated)
    }

    async fn collection_info(&self, collection: &str) -> Result<Option<CollectionInfo>> {
        let found = self.ask(self.client.collection_info(collection)).await?;
        Ok(found.and_then(|found| found.result))
    }

    /// Again each time: whoever made the collection may have died before.
    async fn index_tenants(&self, collection: &str) -> Result<()> {
        let tenants = KeywordIndexParamsBuilder::default().is_tenant(true);
        let index = CreateFieldIndexCollectionBuilder::new(collection, REPOSITORY, FieldType::Keyword);
        let index = index.field_index_params(tenants).wait(true);
        self.ask(self.client.create_field_index(index)).await?.ok_or_else(|| missing(collection)).map(drop)
    }

    async fn upsert(&self, tenant: &Tenant, space: &Space, points: &[Point]) -> Result<()> {
        for batch in space.directions(points)?.chunks(space.batch()) {
            let points: Vec<_> = batch.iter().map(|point| named(tenant, point)).collect();
            let upsert = UpsertPointsBuilder::new(&space.name, points).wait(true);
            self.ask(self.client.upsert_points(upsert)).await?.ok_or_else(|| missing(&space.name))?;
        }
        Ok(())
    }

    async fn delete(&self, space: &Space, filter: Filter) -> Result<()> {
        let delete = DeletePointsBuilder::new(&space.name).points(filter).wait(true);
        self.ask(self.client.delete_points(delete)).await.map(drop)
    }

    async fn nearest(
        &self,
        tenant: &Tenant,
        space: &Space,
        queries: &[Vec<f32>],
        limit: u32,
        at_least: f32,
    ) -> Result<Vec<Vec<Near>>> {
        let queries: Vec<_> = queries.iter().map(|query| space.direction(query)).collect::<Result<_>>()?;
        if limit == 0 {
            return Ok(vec![Vec::new(); queries.len()]);
        }
        let mut all = Vec::with_capacity(queries.len());
        for batch in queries.chunks(space.batch()) {
            let ask = |query: &Vec<f32>| -> QueryPoints {
                let mut ask = QueryPointsBuilder::new(&space.name)
                    .query(Query::new_nearest(VectorInput::new_dense(query.clone())))
                    .filter(Filter::must([of(tenant)]))
                    .limit(u64::from(limit))
                    .with_payload(true);
                // What lies opposite may be rounded to a little less than -1.
                if at_least > -1.0 {
                    ask = ask.score_threshold(at_least);
                }
                ask.build()
            };
            let batch = batch.iter().map(ask).collect::<Vec<_>>();
            let asked = batch.len();
            let query = QueryBatchPointsBuilder::new(&space.name, batch);
            let Some(answer) = self.ask(self.client.query_batch(query)).await? else {
                all.resize_with(all.len() + asked, Vec::new);
                continue;
            };
            if answer.result.len() != asked {
                return Err(Error::internal(
                    "the vector store returned a different number of results than queries",
                ));
            }
            all.extend(answer.result.into_iter().map(|found| {
                let mut near: Vec<_> = found
                    .result
                    .iter()
                    .filter_map(|point| {
                        Some(Near {
                            id: id_of(tenant, &point.payload)?,
                            cosine: point.score.clamp(-1.0, 1.0),
                        })
                    })
                    .filter(|near| near.cosine >= at_least)
                    .collect();
                near.sort_by(|one, other| other.cosine.total_cmp(&one.cosine).then(one.id.cmp(&other.id)));
                near
            }));
        }
        Ok(all)
    }

    async fn find(&self, tenant: &Tenant, space: &Space, ids: &[Uuid]) -> Result<Vec<Point>> {
        let mut all = Vec::new();
        for batch in ids.chunks(space.batch()) {
            let found = self.retrieve(tenant, space, batch, true).await?;
            all.extend(found.into_iter().filter_map(|point| {
                Some(Point { id: id_of(tenant, &point.payload)?, vector: vector_of(point)? })
            }));
        }
        Ok(all)
    }

    async fn existing(&self, tenant: &Tenant, space: &Space, ids: &[Uuid]) -> Result<Vec<Uuid>> {
        let mut all = Vec::new();
        for batch in ids.chunks(IDS) {
            let found = self.retrieve(tenant, space, batch, false).await?;
            all.extend(found.iter().filter_map(|point| id_of(tenant, &point.payload)));
        }
        Ok(all)
    }

    /// Those of these that are there.
    async fn retrieve(
        &self,
        tenant: &Tenant,
        space: &Space,
        ids: &[Uuid],
        with_vectors: bool,
    ) -> Result<Vec<RetrievedPoint>> {
        let limit = u32::try_from(ids.len()).unwrap_or(u32::MAX);
        let scroll = ScrollPointsBuilder::new(&space.name).filter(these(tenant, ids)).limit(limit);
        let scroll = scroll.with_payload(true).with_vectors(with_vectors);
        Ok(self.ask(self.client.scroll(scroll)).await?.map_or_else(Vec::new, |found| found.result))
    }

    async fn list(
        &self,
        tenant: &Tenant,
        space: &Space,
        after: Option<Uuid>,
        limit: u32,
    ) -> Result<Vec<Uuid>> {
        if limit == 0 {
            return Ok(Vec::new());
        }
        // It begins with the point that it is told, so there is one more to ask for.
        let scroll = ScrollPointsBuilder::new(&space.name).filter(Filter::must([of(tenant)]));
        let mut scroll = scroll.limit(limit.saturating_add(1)).with_payload(true);
        if let Some(after) = after {
            scroll = scroll.offset(key(tenant, after));
        }
        let found = self.ask(self.client.scroll(scroll)).await?.map_or_else(Vec::new, |found| found.result);
        let ids = found.iter().filter_map(|point| id_of(tenant, &point.payload));
        let ids = ids.filter(|id| Some(*id) != after);
        Ok(ids.take(usize::try_from(limit).unwrap_or(usize::MAX)).collect())
    }

    /// The one answer that can't be looked at again: it is only a number.
    async fn count(&self, tenant: &Tenant, space: &Space) -> Result<u64> {
        let count = CountPointsBuilder::new(&space.name).filter(Filter::must([of(tenant)])).exact(true);
        let counted = self.ask(self.client.count(count)).await?.and_then(|counted| counted.result);
        Ok(counted.map_or(0, |counted| counted.count))
    }
}

impl VectorStore for Qdrant {
    fn prepare<'a>(&'a self, space: &'a Space, recreate: bool) -> BoxFuture<'a, Result<bool>> {
        self.prepare(space, recreate).boxed()
    }

    fn upsert<'a>(
        &'a self,
        tenant: &'a Tenant,
        space: &'a Space,
        points: &'a [Point],
    ) -> BoxFuture<'a, Result<()>> {
        self.upsert(tenant, space, points).boxed()
    }

    fn remove<'a>(
        &'a self,
        tenant: &'a Tenant,
        space: &'a Space,
        ids: &'a [Uuid],
    ) -> BoxFuture<'a, Result<()>> {
        async move {
            for batch in ids.chunks(space.batch()) {
                self.delete(space, these(tenant, batch)).await?;
            }
            Ok(())
        }
        .boxed()
    }

    fn nearest<'a>(
        &'a self,
        tenant: &'a Tenant,
        space: &'a Space,
        queries: &'a [Vec<f32>],
        limit: u32,
        at_least: f32,
    ) -> BoxFuture<'a, Result<Vec<Vec<Near>>>> {
        self.nearest(tenant, space, queries, limit, at_least).boxed()
    }

    fn find<'a>(
        &'a self,
        tenant: &'a Tenant,
        space: &'a Space,
        ids: &'a [Uuid],
    ) -> BoxFuture<'a, Result<Vec<Point>>> {
        self.find(tenant, space, ids).boxed()
    }

    fn existing<'a>(
        &'a self,
        tenant: &'a Tenant,
        space: &'a Space,
        ids: &'a [Uuid],
    ) -> BoxFuture<'a, Result<Vec<Uuid>>> {
        self.existing(tenant, space, ids).boxed()
    }

    fn list<'a>(
        &'a self,
        tenant: &'a Tenant,
        space: &'a Space,
        after: Option<Uuid>,
        limit: u32,
    ) -> BoxFuture<'a, Result<Vec<Uuid>>> {
        self.list(tenant, space, after, limit).boxed()
    }

    fn count<'a>(&'a self, tenant: &'a Tenant, space: &'a Space) -> BoxFuture<'a, Result<u64>> {
        self.count(tenant, space).boxed()
    }

    fn index<'a>(&'a self, tenant: &'a Tenant, space: &'a Space) -> BoxFuture<'a, Result<()>> {
        // It keeps a graph for each tenant by itself.
        let _ = (tenant, space);
        std::future::ready(Ok(())).boxed()
    }

    fn delete_tenant<'a>(&'a self, tenant: &'a Tenant, space: &'a Space) -> BoxFuture<'a, Result<()>> {
        self.delete(space, Filter::must([of(tenant)])).boxed()
    }

    fn drop_space<'a>(&'a self, space: &'a Space) -> BoxFuture<'a, Result<()>> {
        async move { self.ask(self.client.delete_collection(&space.name)).await.map(drop) }.boxed()
    }

    fn ping(&self) -> BoxFuture<'_, Result<()>> {
        async move { self.ask(self.client.health_check()).await.map(drop) }.boxed()
    }
}

/// What a point is called in the collection, where two tenants may have points of one id.
fn key(tenant: &Tenant, id: Uuid) -> String {
    Uuid::new_v5(&tenant.repository.uuid(), id.as_bytes()).to_string()
}

fn of(tenant: &Tenant) -> Condition {
    Condition::matches(REPOSITORY, tenant.repository.uuid().to_string())
}

fn these(tenant: &Tenant, ids: &[Uuid]) -> Filter {
    Filter::must([of(tenant), Condition::has_id(ids.iter().map(|id| key(tenant, *id)))])
}

fn named(tenant: &Tenant, point: &Point) -> PointStruct {
    let text = |id: Uuid| Value { kind: Some(Kind::StringValue(id.to_string())) };
    let payload = [(REPOSITORY, text(tenant.repository.uuid())), (ID, text(point.id))];
    PointStruct {
        id: Some(key(tenant, point.id).into()),
        vectors: Some(point.vector.clone().into()),
        payload: payload.into_iter().map(|(name, value)| (name.to_owned(), value)).collect(),
    }
}

/// The id of a point that was sent to us, if it is the tenant's.
fn id_of(tenant: &Tenant, payload: &HashMap<String, Value>) -> Option<Uuid> {
    let id = |name| match &payload.get(name)?.kind {
        Some(Kind::StringValue(text)) => Uuid::parse_str(text).ok(),
        _ => None,
    };
    if id(REPOSITORY)? == tenant.repository.uuid() { id(ID) } else { None }
}

fn vector_of(point: RetrievedPoint) -> Option<Vec<f32>> {
    use qdrant_client::qdrant::vector_output::Vector;
    match point.vectors?.get_vector()? {
        Vector::Dense(dense) => Some(dense.data),
        _ => None,
    }
}

fn vectors_of(found: &CollectionInfo) -> Option<&VectorParams> {
    match found.config.as_ref()?.params.as_ref()?.vectors_config.as_ref()?.config.as_ref()? {
        Config::Params(params) => Some(params),
        Config::ParamsMap(_) => None,
    }
}

fn fits(found: &CollectionInfo, space: &Space) -> bool {
    vectors_of(found).is_some_and(|params| {
        params.size == u64::from(space.dimensions) && params.distance == i32::from(Distance::Cosine)
    })
}

fn about(found: &CollectionInfo) -> String {
    match vectors_of(found) {
        Some(params) if params.distance == i32::from(Distance::Cosine) => {
            format!("vectors of {} dimensions", params.size)
        }
        Some(params) => format!("vectors of {} dimensions with a distance other than cosine", params.size),
        None => "vectors of several kinds".to_owned(),
    }
}

fn missing(collection: &str) -> Error {
    Error::Operator(format!(
        "the vector store has no collection {collection}; it is created when `okt serve` starts"
    ))
}

fn code(error: &QdrantError) -> Option<i32> {
    match error {
        QdrantError::ResponseError { status } | QdrantError::ResourceExhaustedError { status, .. } => {
            Some(status.code().into())
        }
        _ => None,
    }
}

fn from_qdrant(error: QdrantError) -> Error {
    match code(&error) {
        Some(PERMISSION_DENIED | UNAUTHENTICATED) => Error::Operator(
            "the vector store rejected the API key; see providers.vector_store.api_key (VECTOR_STORE_API_KEY)"
                .to_owned(),
        ),
        Some(code) if OUR_FAULT.contains(&code) => Error::Internal(Box::new(error)),
        Some(_) => Error::Unavailable { service: SERVICE, cause: Box::new(error) },
        None => Error::Internal(Box::new(error)),
    }
}
