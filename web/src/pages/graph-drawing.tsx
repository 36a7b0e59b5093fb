//! The drawing of a graph. It says nothing that the table does not say.

import Graph from "graphology";
import { useEffect, useRef } from "react";
import Sigma from "sigma";
import layoutAddress from "./layout.worker.ts?worker&url";
import { scriptUrl } from "../app/trusted";
import { t } from "../words";
import type { Edge, Node, Picked } from "./graph";

type Places = Record<string, { x: number; y: number }>;
const ROUNDS = 120;

function color(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

/** Where nodes were placed is kept for each centre. */
function storedPlaces(key: string): Places {
  try {
    return JSON.parse(sessionStorage.getItem(key) ?? "{}") as Places;
  } catch {
    return {};
  }
}

export default function Drawing({ nodes, edges, center, picked, onPick, onExpand }: { nodes: Node[]; edges: Edge[]; center: string | undefined; picked: Picked; onPick: (picked: Picked) => void; onExpand: (id: string) => void }) {
  const box = useRef<HTMLDivElement>(null);
  const sigma = useRef<Sigma | null>(null);
  const places = useRef<Places>({});
  const acts = useRef({ onPick, onExpand });
  acts.current = { onPick, onExpand };
  const now = useRef(picked);
  now.current = picked;
  const key = `okt-graph ${center ?? ""}`;

  useEffect(() => {
    if (!box.current) return;
    places.current = { ...storedPlaces(key), ...places.current };
    const known = places.current;
    const graph = new Graph({ type: "undirected" });
    const most = Math.max(1, ...nodes.map((one) => one.fact_count));
    const strongest = Math.max(1, ...edges.map((one) => one.shared_fact_count));
    nodes.forEach((one, n) => {
      const angle = n * 2.4;
      const at = known[one.id] ?? { x: Math.sqrt(n) * Math.cos(angle) * 10, y: Math.sqrt(n) * Math.sin(angle) * 10 };
      graph.addNode(one.id, { label: one.canonical_name, size: 4 + 12 * Math.sqrt(one.fact_count / most), ...at });
    });
    for (const one of edges) graph.addEdge(one.from, one.to, { size: 0.6 + 4 * (one.shared_fact_count / strongest), weight: one.shared_fact_count });
    const theme = { node: color("--line"), edge: color("--edge"), accent: color("--accent"), ink: color("--ink"), soft: color("--soft") };
    const drawn = new Sigma(graph, box.current, {
      allowInvalidContainer: true,
      labelColor: { color: theme.ink },
      labelFont: "system-ui, sans-serif",
      labelRenderedSizeThreshold: 7,
      defaultNodeColor: theme.node,
      defaultEdgeColor: theme.edge,
      enableEdgeEvents: true,
      renderEdgeLabels: false,
      // The one of the library draws a white box, also in the dark.
      defaultDrawNodeHover: () => {},
      nodeReducer: (id, data) => {
        const chosen = now.current;
        if (id === center || (chosen && "node" in chosen && chosen.node === id) || (chosen && "from" in chosen && (chosen.from === id || chosen.to === id))) return { ...data, color: theme.accent, forceLabel: true, zIndex: 1 };
        if (chosen && "node" in chosen && graph.hasNode(chosen.node) && graph.areNeighbors(chosen.node, id)) return { ...data, color: theme.soft, forceLabel: true };
        return data;
      },
      edgeReducer: (id, data) => {
        const chosen = now.current;
        const [from, to] = graph.extremities(id);
        const lit = chosen && ("node" in chosen ? from === chosen.node || to === chosen.node : (from === chosen.from && to === chosen.to) || (from === chosen.to && to === chosen.from));
        return lit ? { ...data, color: theme.accent, zIndex: 1 } : data;
      },
    });
    sigma.current = drawn;
    drawn.on("clickNode", ({ node }) => acts.current.onPick({ node }));
    drawn.on("clickEdge", ({ edge }) => acts.current.onPick({ from: graph.source(edge), to: graph.target(edge) }));
    drawn.on("clickStage", () => acts.current.onPick(null));
    drawn.on("doubleClickNode", (event) => {
      event.preventSigmaDefault();
      acts.current.onExpand(event.node);
    });
    let worker: Worker | undefined;
    if (nodes.some((one) => !known[one.id])) {
      worker = new Worker(scriptUrl(new URL(layoutAddress, import.meta.url).href) as string, { type: "module" });
      worker.addEventListener("message", (event: MessageEvent<Places>) => {
        places.current = { ...places.current, ...event.data };
        try {
          sessionStorage.setItem(key, JSON.stringify(places.current));
        } catch {
          // Then they are placed again.
        }
        graph.updateEachNodeAttributes((id, data) => ({ ...data, ...event.data[id] }));
        drawn.refresh();
      });
      worker.postMessage({
        nodes: graph.mapNodes((id, data) => ({ id, x: data.x as number, y: data.y as number, size: data.size as number })),
        edges: edges.map((one) => ({ from: one.from, to: one.to, weight: one.shared_fact_count })),
        rounds: ROUNDS,
      });
    }
    return () => {
      worker?.terminate();
      drawn.kill();
      sigma.current = null;
    };
  }, [nodes, edges, center, key]);
  useEffect(() => {
    sigma.current?.refresh({ skipIndexation: true });
  }, [picked]);
  return <div ref={box} className="graph-canvas" role="img" aria-label={t("A drawing of {n} concepts. The table has the same content.", { n: nodes.length })} />;
}
