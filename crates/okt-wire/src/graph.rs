//! The graph that concepts make.

use okt_app::{LeftOut, PathStep, SeenEdge, SeenGraph, SeenPath};
use okt_model::{Concept, FactId, NoPath};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

use crate::concepts::ConceptName;
use crate::vocabulary::schema;

/// A part of the graph, for drawing.
#[derive(Serialize, ToSchema)]
#[schema(as = Graph)]
pub struct GraphView {
    /// The center first, then its neighbours.
    pub nodes: Vec<NodeView>,
    /// The strongest first.
    pub edges: Vec<EdgeView>,
    pub left_out: LeftOutView,
}

/// A concept.
#[derive(Serialize, ToSchema)]
#[schema(as = GraphNode)]
pub struct NodeView {
    #[schema(example = "019ca8bb-b5c0-7a41-8d2c-5b6f0c9e1a37")]
    pub id: Uuid,
    #[schema(example = "Honey bee")]
    pub canonical_name: String,
    #[schema(example = "Species")]
    pub context: String,
    #[schema(required, example = "dbo:Species")]
    pub ontology_class: Option<String>,
    #[schema(example = 12)]
    pub fact_count: i64,
    /// How many edges it is from the center; null without a center.
    #[schema(required, example = 1)]
    pub depth: Option<u32>,
}

/// A relation of two concepts.
#[derive(Serialize, ToSchema)]
#[schema(as = GraphEdge)]
pub struct EdgeView {
    pub from: Uuid,
    pub to: Uuid,
    /// How many facts speak of both.
    #[schema(example = 6)]
    pub shared_fact_count: i64,
    /// `insignificant`, `weak` or `stable`.
    #[schema(value_type = schema::Strength)]
    pub strength: &'static str,
}

/// What the graph does not show.
#[derive(Serialize, ToSchema)]
#[schema(as = GraphLeftOut)]
pub struct LeftOutView {
    /// Concepts within the depth, or without a center all others.
    #[schema(example = 7)]
    pub nodes: usize,
    /// Relations between concepts that are shown.
    #[schema(example = 0)]
    pub edges: usize,
    /// Whether there may be more concepts than `nodes` says, because not all relations were read.
    pub at_least: bool,
}

/// A path from one concept to another.
#[derive(Serialize, ToSchema)]
#[schema(as = GraphPath)]
pub struct PathView {
    /// The concepts of the path, both ends included; empty if none was found.
    pub path: Vec<ConceptName>,
    /// What relates each of them to the next.
    pub steps: Vec<StepView>,
    /// Why there is no path: `not_connected` or `not_within_limits`; null if there is one.
    #[schema(required, value_type = Option<schema::NoPath>)]
    pub reason: Option<&'static str>,
    /// How many concepts were looked at, at most 500.
    #[schema(example = 2)]
    pub looked_up: usize,
}

/// A step of a path.
#[derive(Serialize, ToSchema)]
#[schema(as = GraphPathStep)]
pub struct StepView {
    #[serde(flatten)]
    pub edge: EdgeView,
    /// Up to two of the facts that speak of both.
    #[schema(example = json!(["019ca8bb-b5c0-7a41-8d2c-5b6f0c9e1a37"]))]
    pub fact_ids: Vec<Uuid>,
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct GraphQuery {
    /// The concept in the middle. Without it, the graph shows the concepts with the most facts.
    pub center: Option<Uuid>,
    /// How many edges a concept may be from the center, 1 to 3. Nothing without a center.
    #[param(minimum = 1, maximum = 3, default = 1)]
    pub depth: Option<u32>,
    /// How many concepts, 1 to 200.
    #[param(minimum = 1, maximum = 200, default = 50)]
    pub limit: Option<u32>,
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct PathQuery {
    /// The concept that the path begins with.
    pub from: Uuid,
    /// The concept that the path ends with.
    pub to: Uuid,
}

impl From<SeenGraph> for GraphView {
    fn from(seen: SeenGraph) -> Self {
        let LeftOut { nodes, edges, at_least } = seen.left_out;
        Self {
            nodes: seen.nodes.into_iter().map(|(concept, depth)| NodeView::new(concept, depth)).collect(),
            edges: seen.edges.into_iter().map(Into::into).collect(),
            left_out: LeftOutView { nodes, edges, at_least },
        }
    }
}

impl NodeView {
    fn new(concept: Concept, depth: Option<u32>) -> Self {
        Self {
            id: concept.id.uuid(),
            canonical_name: concept.canonical_name,
            context: concept.context,
            ontology_class: concept.ontology_class,
            fact_count: concept.fact_count,
            depth,
        }
    }
}

impl From<SeenEdge> for EdgeView {
    fn from(edge: SeenEdge) -> Self {
        Self {
            from: edge.from.uuid(),
            to: edge.to.uuid(),
            shared_fact_count: edge.shared_fact_count,
            strength: edge.strength.as_str(),
        }
    }
}

impl From<SeenPath> for PathView {
    fn from(seen: SeenPath) -> Self {
        Self {
            path: seen.concepts.into_iter().map(Into::into).collect(),
            steps: seen.steps.into_iter().map(Into::into).collect(),
            reason: seen.reason.map(NoPath::as_str),
            looked_up: seen.looked_up,
        }
    }
}

impl From<PathStep> for StepView {
    fn from(step: PathStep) -> Self {
        Self { edge: step.edge.into(), fact_ids: step.facts.into_iter().map(FactId::uuid).collect() }
    }
}
