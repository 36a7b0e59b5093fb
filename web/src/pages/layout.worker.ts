//! Places the nodes of a graph, away from the page so that this stays quick.

import Graph from "graphology";
import forceAtlas2 from "graphology-layout-forceatlas2";

type Asked = { nodes: { id: string; x: number; y: number; size: number }[]; edges: { from: string; to: string; weight: number }[]; rounds: number };

addEventListener("message", (event: MessageEvent<Asked>) => {
  const { nodes, edges, rounds } = event.data;
  const graph = new Graph({ type: "undirected" });
  for (const { id, ...at } of nodes) graph.addNode(id, at);
  for (const { from, to, weight } of edges) if (!graph.hasEdge(from, to)) graph.addEdge(from, to, { weight });
  const settings = { ...forceAtlas2.inferSettings(graph), adjustSizes: false, barnesHutOptimize: nodes.length > 400, edgeWeightInfluence: 0.6, gravity: 1.2 };
  const places = forceAtlas2(graph, { iterations: rounds, settings, getEdgeWeight: "weight" });
  postMessage(places);
});
