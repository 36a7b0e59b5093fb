//! Concepts and what they share: as a drawing, and as a table of the same content.

import { useQuery, useQueryClient } from "@tanstack/react-query";
import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import { Share2 } from "lucide-react";
import { lazy, Suspense, useEffect, useMemo, useState } from "react";
import { api, ok, R, type Schemas } from "../api/client";
import { useKeys } from "../app/keys";
import { reason, useRepo, useRepository } from "../app/queries";
import { complain } from "../app/toasts";
import { useTitle } from "../app/title";
import { script } from "../app/scripts";
import { Badge } from "../parts/badges";
import { Button, LinkButton } from "../parts/button";
import { Empty, Failure, Skeleton } from "../parts/states";
import { count, t, tn } from "../words";
import { Shared } from "./concept";
import { PickConcept } from "./concept-acts";
import "./graph.css";

const Drawing = lazy(() => script(() => import("./graph-drawing")));

export type Node = Schemas["GraphNode"];
export type Edge = Schemas["GraphEdge"];
export type Picked = { node: string } | { from: string; to: string } | null;

/** How many are asked for at first, and by each opening of a concept. */
const FIRST = 120;
const MORE = 50;

function hasWebGl(): boolean {
  try {
    return document.createElement("canvas").getContext("webgl2") !== null;
  } catch {
    return false;
  }
}

export default function GraphPage() {
  const repoID = useRepo();
  const { data: repository } = useRepository();
  useTitle(t("Graph"), repository?.name);
  const search = useSearch({ from: "/r/$slug/graph" });
  const navigate = useNavigate({ from: "/r/$slug/graph" });
  const client = useQueryClient();
  const calm = useMemo(() => matchMedia("(prefers-reduced-motion: reduce)").matches || !hasWebGl(), []);
  const asTable = search.view === "table" || (search.view === undefined && calm);
  const [more, setMore] = useState<Schemas["Graph"][]>([]);
  const [picked, setPicked] = useState<Picked>(null);
  const [typed, setTyped] = useState("");
  const center = search.center;
  const graph = useQuery({
    queryKey: ["graph", repoID, center ?? ""],
    queryFn: ({ signal }) => ok(api.GET(`${R}/graph`, { params: { path: { repoID }, query: { center, depth: center ? 2 : undefined, limit: FIRST } }, signal })),
  });
  useEffect(() => {
    setMore([]);
    setPicked(center ? { node: center } : null);
  }, [center, repoID]);
  const [nodes, edges] = useMemo(() => {
    const parts = graph.data ? [graph.data, ...more] : [];
    const nodes = new Map<string, Node>();
    const edges = new Map<string, Edge>();
    for (const part of parts) for (const node of part.nodes) if (!nodes.has(node.id)) nodes.set(node.id, node);
    for (const part of parts) for (const edge of part.edges) edges.set([edge.from, edge.to].sort().join(" "), edge);
    return [[...nodes.values()], [...edges.values()].filter((edge) => nodes.has(edge.from) && nodes.has(edge.to))];
  }, [graph.data, more]);
  const expand = async (id: string) => {
    try {
      const found = await client.fetchQuery({
        queryKey: ["graph", repoID, id, MORE],
        queryFn: ({ signal }) => ok(api.GET(`${R}/graph`, { params: { path: { repoID }, query: { center: id, depth: 1, limit: MORE } }, signal })),
      });
      setMore((old) => [...old, found]);
    } catch (error) {
      complain(reason(error));
    }
  };
  const setView = (view: string) => void navigate({ search: (old) => ({ ...old, view }) });
  useKeys({ t: () => setView(asTable ? "drawing" : "table"), Escape: picked ? () => setPicked(null) : undefined });
  const left = graph.data?.left_out;
  const node = picked && "node" in picked ? nodes.find((one) => one.id === picked.node) : undefined;
  const nameOf = (id: string) => nodes.find((one) => one.id === id)?.canonical_name ?? id;
  return (
    <div className="graph">
      <header className="graph-head">
        <h1>{t("Graph")}</h1>
        {left && (left.nodes > 0 || left.edges > 0) && (
          <span className="soft small">
            {tn(left.nodes, "{n} concept", "{n} concepts")}
            {left.at_least ? "+" : ""}, {tn(left.edges, "{n} relation left out", "{n} relations left out")}
          </span>
        )}
        <span className="grow" />
        {center && (
          <LinkButton small to="/r/$slug/graph" params={{ slug: repoID }} search={{}}>
            {t("The largest concepts")}
          </LinkButton>
        )}
        <span className="row tight" role="group" aria-label={t("How it is shown")}>
          <Button small aria-pressed={!asTable} primary={!asTable} onPress={() => setView("drawing")}>
            {t("Drawing")}
          </Button>
          <Button small aria-pressed={asTable} primary={asTable} onPress={() => setView("table")}>
            {t("Table")}
          </Button>
        </span>
      </header>
      <div className="graph-body">
        <section className="graph-main" aria-label={asTable ? t("Table") : t("Drawing")}>
          {graph.isPending ? (
            <Skeleton rows={8} />
          ) : graph.error ? (
            <Failure error={graph.error} retry={() => void graph.refetch()} />
          ) : nodes.length === 0 ? (
            <Empty icon={<Share2 aria-hidden />} title={t("No concepts yet")} action={<LinkButton primary to="/r/$slug/sources" params={{ slug: repoID }}>{t("To the sources")}</LinkButton>}>
              {t("Concepts are found in facts, a moment after these.")}
            </Empty>
          ) : asTable ? (
            <EdgeTable nodes={nodes} edges={edges} onPick={setPicked} />
          ) : (
            <Suspense fallback={<Skeleton rows={8} />}>
              <Drawing nodes={nodes} edges={edges} center={center} picked={picked} onPick={setPicked} onExpand={(id) => void expand(id)} />
            </Suspense>
          )}
        </section>
        <aside className="graph-side stack" aria-live="polite">
          <PickConcept calm label={t("Put in the middle")} typed={typed} setTyped={setTyped} onPick={(one) => { setTyped(""); void navigate({ search: (old) => ({ ...old, center: one.id }) }); }} />
          {node && (
            <section className="stack tight">
              <h2>{node.canonical_name}</h2>
              <div className="item-more">
                <Badge>{node.context}</Badge>
                <span>{tn(node.fact_count, "{n} fact", "{n} facts")}</span>
              </div>
              <div className="row">
                <LinkButton small to="/r/$slug/concepts/$id" params={{ slug: repoID, id: node.id }}>
                  {t("Open")}
                </LinkButton>
                <Button small onPress={() => void expand(node.id)}>
                  {t("Show its neighbours")}
                </Button>
                <Button small onPress={() => void navigate({ search: (old) => ({ ...old, center: node.id }) })}>
                  {t("Put in the middle")}
                </Button>
              </div>
              <PathFrom node={node} />
            </section>
          )}
          {picked && "from" in picked && (
            <section className="stack tight">
              <h2>
                {nameOf(picked.from)} – {nameOf(picked.to)}
              </h2>
              <Shared from={picked.from} to={picked.to} />
            </section>
          )}
          {!picked && <p className="soft small">{t("A click shows what a concept or a line stands for, a double click its neighbours. Thicker lines share more facts. The key t shows the same as a table.")}</p>}
        </aside>
      </div>
    </div>
  );
}

/** A shortest way to another concept, with the facts on it. */
function PathFrom({ node }: { node: Node }) {
  const repoID = useRepo();
  const [typed, setTyped] = useState("");
  const [to, setTo] = useState<Schemas["ConceptSummary"] | null>(null);
  const path = useQuery({
    queryKey: ["graph-path", repoID, node.id, to?.id],
    enabled: to !== null,
    queryFn: ({ signal }) => ok(api.GET(`${R}/graph/path`, { params: { path: { repoID }, query: { from: node.id, to: to?.id ?? "" } }, signal })),
  });
  useEffect(() => setTo(null), [node.id]);
  return (
    <details className="stack tight">
      <summary>{t("How it is connected with another concept")}</summary>
      {to ? (
        <p className="row">
          <strong className="grow">{to.canonical_name}</strong>
          <Button small quiet onPress={() => setTo(null)} aria-label={t("Another")}>
            ×
          </Button>
        </p>
      ) : (
        <PickConcept calm label={t("The other concept")} typed={typed} setTyped={setTyped} without={node.id} onPick={setTo} />
      )}
      {to && path.isPending && <Skeleton rows={2} height={30} />}
      {path.error && <Failure error={path.error} />}
      {path.data && path.data.path.length === 0 && <p className="soft">{path.data.reason === "not_connected" ? t("They are not connected.") : t("No connection was found within the limits.")}</p>}
      {path.data && path.data.path.length > 0 && (
        <ol className="path">
          {path.data.path.map((one, n) => {
            const step = path.data.steps[n];
            return (
              <li key={one.concept_id}>
                <Link to="/r/$slug/concepts/$id" params={{ slug: repoID, id: one.concept_id }}>
                  {one.canonical_name}
                </Link>
                {step && (
                  <span className="soft small path-step">
                    {tn(step.shared_fact_count, "{n} shared fact", "{n} shared facts")}{" "}
                    {step.fact_ids.map((id, m) => (
                      <Link key={id} to="/r/$slug/facts/$id" params={{ slug: repoID, id }}>
                        {t("fact {n}", { n: m + 1 })}{" "}
                      </Link>
                    ))}
                  </span>
                )}
              </li>
            );
          })}
        </ol>
      )}
    </details>
  );
}

function EdgeTable({ nodes, edges, onPick }: { nodes: Node[]; edges: Edge[]; onPick: (picked: Picked) => void }) {
  const repoID = useRepo();
  const names = new Map(nodes.map((one) => [one.id, one.canonical_name]));
  const alone = nodes.filter((one) => !edges.some((edge) => edge.from === one.id || edge.to === one.id));
  const name = (id: string) => (
    <Link to="/r/$slug/concepts/$id" params={{ slug: repoID, id }}>
      {names.get(id)}
    </Link>
  );
  return (
    <div className="graph-table" tabIndex={0} role="region" aria-label={t("Relations")}>
      <table>
        <caption className="unseen">{t("Relations")}</caption>
        <thead>
          <tr>
            <th scope="col">{t("Concept")}</th>
            <th scope="col">{t("Concept")}</th>
            <th scope="col" className="num">
              {t("Shared facts")}
            </th>
            <th scope="col">
              <span className="unseen">{t("Facts")}</span>
            </th>
          </tr>
        </thead>
        <tbody>
          {edges.map((edge) => (
            <tr key={`${edge.from} ${edge.to}`}>
              <td>{name(edge.from)}</td>
              <td>{name(edge.to)}</td>
              <td className="num">{count(edge.shared_fact_count)}</td>
              <td>
                <Button small quiet onPress={() => onPick({ from: edge.from, to: edge.to })} aria-label={t("Facts that {a} and {b} share", { a: names.get(edge.from) ?? "", b: names.get(edge.to) ?? "" })}>
                  {t("Facts")}
                </Button>
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      {alone.length > 0 && (
        <section className="stack tight graph-alone">
          <h2>{t("Without relations here")}</h2>
          <p>
            {alone.map((one) => (
              <span key={one.id}>{name(one.id)} · </span>
            ))}
          </p>
        </section>
      )}
    </div>
  );
}
