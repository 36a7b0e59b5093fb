//! Addresses and their pages. Each page is a script of its own.

import { createRootRoute, createRoute, createRouter, lazyRouteComponent, parseSearchWith, stringifySearchWith } from "@tanstack/react-router";
import type { ComponentType } from "react";
import { BASE } from "../api/session";
import { Skeleton } from "../parts/states";
import { script } from "./scripts";
import { NotFound, RepositoryShell, RootShell } from "./shell";

const page = <T extends { default: ComponentType }>(load: () => Promise<T>) => lazyRouteComponent(() => script(load));

const text = (value: unknown) => (typeof value === "string" && value !== "" ? value : typeof value === "number" ? String(value) : undefined);
const number = (value: unknown) => {
  const n = Number(value);
  return Number.isInteger(n) && n > 0 ? n : undefined;
};

const root = createRootRoute({ component: RootShell, notFoundComponent: NotFound });

const home = createRoute({ getParentRoute: () => root, path: "/", component: page(() => import("../pages/repositories")) });
const account = createRoute({ getParentRoute: () => root, path: "/account", component: page(() => import("../pages/account")) });
const keys = createRoute({ getParentRoute: () => root, path: "/account/keys", component: page(() => import("../pages/keys")) });
const programs = createRoute({ getParentRoute: () => root, path: "/account/programs", component: page(() => import("../pages/programs")) });
const connect = createRoute({ getParentRoute: () => root, path: "/account/connect", component: page(() => import("../pages/connect")) });

const join = createRoute({ getParentRoute: () => root, path: "/join", component: page(() => import("../pages/join")) });

type Spent = { by?: string; days?: string };
const spent = (search: Record<string, unknown>): Spent => ({ by: text(search.by), days: text(search.days) });
type Recorded = { from?: string; to?: string; action?: string; actor?: string; object?: string };
const recorded = (search: Record<string, unknown>): Recorded => ({ from: text(search.from), to: text(search.to), action: text(search.action), actor: text(search.actor), object: text(search.object) });

const health = createRoute({ getParentRoute: () => root, path: "/admin", component: page(() => import("../pages/admin-health")) });
const users = createRoute({ getParentRoute: () => root, path: "/admin/users", component: page(() => import("../pages/admin-users")) });
const allJobs = createRoute({
  getParentRoute: () => root,
  path: "/admin/jobs",
  validateSearch: (search: Record<string, unknown>): { state?: string; kind?: string } => ({ state: text(search.state), kind: text(search.kind) }),
  component: page(() => import("../pages/admin-jobs")),
});
const allCost = createRoute({ getParentRoute: () => root, path: "/admin/cost", validateSearch: spent, component: page(() => import("../pages/admin-cost")) });
const roles = createRoute({ getParentRoute: () => root, path: "/admin/roles", component: page(() => import("../pages/admin-roles")) });
const allAudit = createRoute({ getParentRoute: () => root, path: "/admin/audit", validateSearch: recorded, component: page(() => import("../pages/admin-audit")) });
const promptsets = createRoute({ getParentRoute: () => root, path: "/promptsets", component: page(() => import("../pages/promptsets")) });
const development = import.meta.env.DEV
  ? [createRoute({ getParentRoute: () => root, path: "/dev/parts", component: page(() => import("../pages/gallery")) })]
  : [];

const repository = createRoute({ getParentRoute: () => root, path: "/r/$slug", component: RepositoryShell });
const at = () => repository;

const overview = createRoute({ getParentRoute: at, path: "/", component: page(() => import("../pages/overview")) });
const sources = createRoute({
  getParentRoute: at,
  path: "/sources",
  validateSearch: (search: Record<string, unknown>): { q?: string; status?: string; kind?: string; sort?: string; add?: string } => ({
    q: text(search.q),
    status: text(search.status),
    kind: text(search.kind),
    sort: text(search.sort),
    add: text(search.add),
  }),
  component: page(() => import("../pages/sources")),
});
const reader = createRoute({
  getParentRoute: at,
  path: "/sources/$id",
  validateSearch: (search: Record<string, unknown>): { fact?: string; page?: number; view?: string; find?: string } => ({
    find: text(search.find),
    fact: text(search.fact),
    page: number(search.page),
    view: text(search.view),
  }),
  component: page(() => import("../pages/reader")),
});
const search = createRoute({
  getParentRoute: at,
  path: "/search",
  validateSearch: (search: Record<string, unknown>): { q?: string; types?: string; mode?: string; explain?: string } => ({
    q: text(search.q),
    types: text(search.types),
    mode: text(search.mode),
    explain: text(search.explain),
  }),
  component: page(() => import("../pages/search")),
});
const ask = createRoute({
  getParentRoute: at,
  path: "/ask",
  validateSearch: (search: Record<string, unknown>): { q?: string; sources?: string; concepts?: string; context?: string; from?: number; to?: number; whose?: string } => ({
    q: text(search.q),
    sources: text(search.sources),
    concepts: text(search.concepts),
    context: text(search.context),
    from: number(search.from),
    to: number(search.to),
    whose: text(search.whose),
  }),
  component: page(() => import("../pages/ask")),
});
const answer = createRoute({ getParentRoute: at, path: "/answers/$id", component: page(() => import("../pages/answer")) });
const facts = createRoute({
  getParentRoute: at,
  path: "/facts",
  validateSearch: (search: Record<string, unknown>): { q?: string; status?: string; sort?: string; concept?: string; grouped?: string } => ({
    q: text(search.q),
    status: text(search.status),
    sort: text(search.sort),
    concept: text(search.concept),
    grouped: text(search.grouped),
  }),
  component: page(() => import("../pages/facts")),
});
const fact = createRoute({ getParentRoute: at, path: "/facts/$id", component: page(() => import("../pages/fact")) });
const concepts = createRoute({
  getParentRoute: at,
  path: "/concepts",
  validateSearch: (search: Record<string, unknown>): { q?: string; context?: string; sort?: string; small?: string } => ({
    q: text(search.q),
    context: text(search.context),
    sort: text(search.sort),
    small: text(search.small),
  }),
  component: page(() => import("../pages/concepts")),
});
const concept = createRoute({
  getParentRoute: at,
  path: "/concepts/$id",
  validateSearch: (search: Record<string, unknown>): { tab?: string; version?: number; diff?: number } => ({
    tab: text(search.tab),
    version: number(search.version),
    diff: number(search.diff),
  }),
  component: page(() => import("../pages/concept")),
});
const contradictions = createRoute({
  getParentRoute: at,
  path: "/contradictions",
  validateSearch: (search: Record<string, unknown>): { state?: string } => ({ state: text(search.state) }),
  component: page(() => import("../pages/contradictions")),
});
const investigations = createRoute({ getParentRoute: at, path: "/investigations", component: page(() => import("../pages/investigations")) });
const investigation = createRoute({
  getParentRoute: at,
  path: "/investigations/$id",
  validateSearch: (search: Record<string, unknown>): { tab?: string } => ({ tab: text(search.tab) }),
  component: page(() => import("../pages/investigation")),
});
const reports = createRoute({ getParentRoute: at, path: "/reports", component: page(() => import("../pages/reports")) });
const report = createRoute({
  getParentRoute: at,
  path: "/reports/$id",
  validateSearch: (search: Record<string, unknown>): { show?: string; sentence?: string } => ({ show: text(search.show), sentence: text(search.sentence) }),
  component: page(() => import("../pages/report")),
});
const graph = createRoute({
  getParentRoute: at,
  path: "/graph",
  validateSearch: (search: Record<string, unknown>): { center?: string; view?: string; to?: string } => ({ center: text(search.center), view: text(search.view), to: text(search.to) }),
  component: page(() => import("../pages/graph")),
});
const history = createRoute({ getParentRoute: at, path: "/history", component: page(() => import("../pages/history")) });
const jobs = createRoute({
  getParentRoute: at,
  path: "/jobs",
  validateSearch: (search: Record<string, unknown>): { state?: string } => ({ state: text(search.state) }),
  component: page(() => import("../pages/jobs")),
});

const cost = createRoute({ getParentRoute: at, path: "/cost", validateSearch: spent, component: page(() => import("../pages/cost")) });
const exchange = createRoute({ getParentRoute: at, path: "/exchange", validateSearch: (search: Record<string, unknown>): { sample?: string } => ({ sample: text(search.sample) }), component: page(() => import("../pages/exchange")) });
const members = createRoute({ getParentRoute: at, path: "/members", component: page(() => import("../pages/members")) });
const audit = createRoute({ getParentRoute: at, path: "/audit", validateSearch: recorded, component: page(() => import("../pages/audit")) });
const settings = createRoute({
  getParentRoute: at,
  path: "/settings",
  validateSearch: (search: Record<string, unknown>): { tab?: string } => ({ tab: text(search.tab) }),
  component: page(() => import("../pages/settings")),
});

const pages = [overview, sources, reader, search, ask, answer, facts, fact, concepts, concept, contradictions, investigations, investigation, reports, report, graph, history, jobs, cost, exchange, members, audit, settings];
const tree = root.addChildren([home, account, keys, programs, connect, join, health, users, allJobs, allCost, roles, allAudit, promptsets, ...development, repository.addChildren(pages)]);

export const router = createRouter({
  routeTree: tree,
  basepath: new URL(BASE).pathname,
  defaultPreload: "intent",
  scrollRestoration: true,
  // Words stay words: `?q=2019` is no number.
  parseSearch: parseSearchWith((value) => value),
  stringifySearch: stringifySearchWith(String),
  defaultPendingComponent: () => <Skeleton />,
  defaultPendingMs: 150,
});

declare module "@tanstack/react-router" {
  interface Register {
    router: typeof router;
  }
}
