//! What surrounds every page: who one is, where one is, and what is still running.

import { Link, Outlet, useLocation, useNavigate } from "@tanstack/react-router";
import {
  ArrowLeftRight,
  BookOpenText,
  Boxes,
  ChevronsUpDown,
  Coins,
  FileStack,
  FolderSearch,
  History,
  Lightbulb,
  ListTodo,
  Menu as MenuIcon,
  MessageCircleQuestion,
  Scale,
  ScrollText,
  Search,
  Settings,
  Share2,
  UserRound,
  Users,
} from "lucide-react";
import { lazy, type ReactNode, Suspense, useEffect, useRef, useState, useSyncExternalStore } from "react";
import { useQuery } from "@tanstack/react-query";
import { api, ok } from "../api/client";
import { BASE, session, signOut } from "../api/session";
import { Button } from "../parts/button";
import { Dialog, Menu, MenuItem } from "../parts/overlay";
import { Empty, Failure } from "../parts/states";
import { LANGUAGES, language, setLanguage, t, tn } from "../words";
import { isOver, useEvents, useJobs, useLine } from "./events";
import { useKeys } from "./keys";
import { useCan, useCanHere, useRepositories, useRepository, useRepo } from "./queries";
import { script } from "./scripts";
import { setTheme, theme } from "./theme";
import { complain, Toasts } from "./toasts";

const SignIn = lazy(() => script(() => import("../pages/sign-in")));
const Palette = lazy(() => script(() => import("./palette")));
const KeyHelp = lazy(() => script(() => import("./key-help")));

export function useSession() {
  return useSyncExternalStore(session.subscribe, session.state);
}

export function RootShell() {
  const state = useSession();
  const was = useRef(false);
  if (state === "in") was.current = true;
  return (
    <>
      {!isSecureContext && <p className="insecure">{t("Not encrypted: you must sign in again after a reload, and copying does not work. Use https.")}</p>}
      {(state === "in" || was.current) && <Outlet />}
      {state === "out" && !was.current && (
        <Suspense>
          <SignIn />
        </Suspense>
      )}
      {state === "out" && was.current && (
        <Dialog title={t("Sign in again")} open onClose={() => {}} fixed>
          <Suspense>
            <SignIn again />
          </Suspense>
        </Dialog>
      )}
      <Toasts />
    </>
  );
}

export function NotFound() {
  return (
    <main className="page">
      <Empty whole title={t("There is no such page")} action={<Link to="/">{t("To your repositories")}</Link>} />
    </main>
  );
}

const NAVIGATION = [
  ["/r/$slug/sources", FileStack, "Sources", "source:read"],
  ["/r/$slug/search", Search, "Search", "fact:read"],
  ["/r/$slug/ask", MessageCircleQuestion, "Ask", "fact:read"],
  ["/r/$slug/facts", Lightbulb, "Facts", "fact:read"],
  ["/r/$slug/concepts", Boxes, "Concepts", "concept:read"],
  ["/r/$slug/contradictions", Scale, "Contradictions", "fact:read"],
  ["/r/$slug/investigations", FolderSearch, "Investigations", "investigation:read"],
  ["/r/$slug/reports", BookOpenText, "Reports", "report:read"],
  ["/r/$slug/graph", Share2, "Graph", "graph:read"],
  ["/r/$slug/history", History, "History", "concept:read"],
  ["/r/$slug/jobs", ListTodo, "Jobs", "job:read"],
] as const;

/** Those of the people who keep a repository. */
const KEEPING = [
  ["/r/$slug/cost", Coins, "Cost", "ai_usage:read"],
  ["/r/$slug/exchange", ArrowLeftRight, "Import and export", "graph:export"],
  ["/r/$slug/members", Users, "Members", "member:read"],
  ["/r/$slug/settings", Settings, "Settings", "repository:manage"],
  ["/r/$slug/audit", ScrollText, "Audit", "audit:read"],
] as const;

/** The words of the navigation, where they can be found. */
const names = () => ({
  Sources: t("Sources"),
  Search: t("Search"),
  Ask: t("Ask"),
  Facts: t("Facts"),
  Concepts: t("Concepts"),
  Contradictions: t("Contradictions"),
  Investigations: t("Investigations"),
  Reports: t("Reports"),
  Graph: t("Graph"),
  History: t("History"),
  Jobs: t("Jobs"),
  Cost: t("Cost"),
  "Import and export": t("Import and export"),
  Members: t("Members"),
  Settings: t("Settings"),
  Audit: t("Audit"),
});

function Navigation({ onGo }: { onGo?: () => void }) {
  const slug = useRepo();
  const can = useCan();
  const words = names();
  return (
    <nav aria-label={t("Repository")}>
      {[NAVIGATION, KEEPING].map((group, n) => (
        <ul key={n} className="nav">
          {group
            .filter(([, , , right]) => can(right))
            .map(([to, Icon, name]) => (
              <li key={to}>
                <Link to={to} params={{ slug }} onClick={onGo} className="nav-item" activeProps={{ "aria-current": "page" }}>
                  <Icon aria-hidden size={17} />
                  {words[name]}
                </Link>
              </li>
            ))}
        </ul>
      ))}
    </nav>
  );
}

function RepositorySwitch() {
  const slug = useRepo();
  const navigate = useNavigate();
  const { data: current } = useRepository();
  const { data: all } = useRepositories();
  return (
    <Menu
      label={t("Repository: {name}", { name: current?.name ?? slug })}
      trigger={
        <>
          <span className="clip grow">{current?.name ?? slug}</span>
          <ChevronsUpDown aria-hidden />
        </>
      }
    >
      {(all?.data ?? []).map((one) => (
        <MenuItem key={one.id} onAction={() => void navigate({ to: "/r/$slug/sources", params: { slug: one.slug } })}>
          {one.name}
        </MenuItem>
      ))}
      <MenuItem onAction={() => void navigate({ to: "/" })}>{t("All repositories")}</MenuItem>
    </Menu>
  );
}

export function AccountMenu() {
  const navigate = useNavigate();
  const here = useCanHere();
  const { data: me } = useQuery({ queryKey: ["me"], staleTime: 300_000, queryFn: ({ signal }) => ok(api.GET("/api/v1/users/me", { signal })) });
  const now = theme();
  return (
    <Menu
      label={t("Account: {name}", { name: me?.name || me?.email || "" })}
      trigger={
        <>
          <UserRound aria-hidden />
          <span className="clip account-name">{me?.name || me?.email}</span>
        </>
      }
    >
      <MenuItem onAction={() => void navigate({ to: "/account" })}>{t("Account and sessions")}</MenuItem>
      <MenuItem onAction={() => void navigate({ to: "/account/keys" })}>{t("Keys and programs")}</MenuItem>
      {here("user:read") && <MenuItem onAction={() => void navigate({ to: "/admin" })}>{t("Installation")}</MenuItem>}
      <MenuItem href={`${BASE}api/docs`} target="_blank">{t("The API of this installation")}</MenuItem>
      <MenuItem onAction={() => setTheme("system")}>{now === "system" ? "✓ " : ""}{t("Colours as the system")}</MenuItem>
      <MenuItem onAction={() => setTheme("light")}>{now === "light" ? "✓ " : ""}{t("Light")}</MenuItem>
      <MenuItem onAction={() => setTheme("dark")}>{now === "dark" ? "✓ " : ""}{t("Dark")}</MenuItem>
      {Object.entries(LANGUAGES).map(([id, name]) => (
        <MenuItem key={id} onAction={() => setLanguage(id as keyof typeof LANGUAGES)}>
          {id === language ? "✓ " : ""}
          {name}
        </MenuItem>
      ))}
      <MenuItem onAction={() => void signOut().then((over) => (over ? location.assign(document.baseURI) : complain(t("The service did not end the session: you are still signed in. Try again."))))}>{t("Sign out")}</MenuItem>
    </Menu>
  );
}

/** What is still running, and whether news comes. */
function Activity() {
  const slug = useRepo();
  const jobs = useJobs();
  const line = useLine();
  const can = useCan();
  // What has a time of its own is not waited for.
  const open = [...jobs.values()].filter((job) => !isOver(job) && job.state !== "scheduled");
  const running = open.filter((job) => job.state === "running").length;
  if (!can("job:read")) return null;
  return (
    <section aria-label={t("What is running")}>
      <Link to="/r/$slug/jobs" params={{ slug }} className="activity">
        <span className={open.length > 0 && line !== "away" ? "pulse on" : "pulse"} aria-hidden />
        <span>
          {line === "away" ? "" : open.length === 0 ? t("Nothing is running") : [running > 0 && tn(running, "{n} job runs", "{n} jobs run"), open.length > running && tn(open.length - running, "{n} job waits", "{n} jobs wait")].filter(Boolean).join(", ")}
          {line === "polled" && <span className="activity-note">{t("No live news: asking every 15 s")}</span>}
          {line === "away" && <span className="activity-note">{t("The service does not answer, trying again")}</span>}
        </span>
      </Link>
    </section>
  );
}

function Brand() {
  return (
    <Link to="/" className="brand" aria-label={t("okt, all repositories")}>
      <img src="./icon.svg" alt="" width="22" height="22" />
      okt
    </Link>
  );
}

export function TopShell({ children }: { children: ReactNode }) {
  return (
    <>
      <header className="shell-top plain">
        <Brand />
        <span className="grow" />
        <AccountMenu />
      </header>
      <main id="main">{children}</main>
    </>
  );
}

export function RepositoryShell() {
  const slug = useRepo();
  const navigate = useNavigate();
  const repository = useRepository();
  const can = useCan();
  const path = useLocation({ select: (at) => at.pathname });
  const [drawer, setDrawer] = useState(false);
  const [palette, setPalette] = useState(false);
  const [help, setHelp] = useState(false);
  useEvents(repository.data ? slug : "");
  const go = (to: (typeof NAVIGATION)[number][0]) => () => void navigate({ to, params: { slug } });
  useKeys({
    "?": () => setHelp(true),
    "/": () => {
      const box = document.querySelector<HTMLInputElement>("main input[type=search]");
      if (box) box.focus();
      else go("/r/$slug/search")();
    },
    "g s": go("/r/$slug/sources"),
    "g a": go("/r/$slug/ask"),
    "g f": go("/r/$slug/facts"),
    "g c": go("/r/$slug/concepts"),
    "g d": go("/r/$slug/contradictions"),
    "g i": go("/r/$slug/investigations"),
    "g r": go("/r/$slug/reports"),
    "g g": go("/r/$slug/graph"),
    "g h": go("/r/$slug/history"),
    "g j": go("/r/$slug/jobs"),
    "g m": () => void navigate({ to: "/r/$slug/members", params: { slug } }),
    "g e": () => void navigate({ to: "/r/$slug/settings", params: { slug } }),
  });
  useEffect(() => {
    const press = (event: KeyboardEvent) => {
      if ((event.metaKey || event.ctrlKey) && event.key.toLowerCase() === "k") {
        event.preventDefault();
        setPalette(true);
      }
    };
    addEventListener("keydown", press);
    return () => removeEventListener("keydown", press);
  }, []);
  // Screen readers begin at the new page.
  const main = useRef<HTMLElement>(null);
  const before = useRef(path);
  useEffect(() => {
    if (before.current === path) return;
    before.current = path;
    if (document.activeElement === document.body) main.current?.focus({ preventScroll: true });
  }, [path]);

  if (repository.error && !repository.data) {
    return (
      <TopShell>
        <div className="page">
          <Failure whole error={repository.error} retry={() => void repository.refetch()} />
        </div>
      </TopShell>
    );
  }
  return (
    <div className="shell">
      <a className="skip" href="#main" onClick={(event) => { event.preventDefault(); main.current?.focus(); }}>
        {t("To the content")}
      </a>
      <header className="shell-top">
        <Button quiet small className="only-narrow" aria-label={t("Navigation")} onPress={() => setDrawer(true)}>
          <MenuIcon aria-hidden />
        </Button>
        <Brand />
        <RepositorySwitch />
        <span className="grow" />
        <Button small className="palette-button" onPress={() => setPalette(true)}>
          <Search aria-hidden />
          <span className="wide-only-text">{t("Go to, search, do")}</span>
          <kbd className="wide-only" aria-hidden>{/Mac/.test(navigator.platform) ? "⌘K" : "Ctrl K"}</kbd>
        </Button>
        <AccountMenu />
      </header>
      <div className="shell-side">
        <Navigation />
        <span className="grow" />
        <Activity />
      </div>
      <main id="main" ref={main} tabIndex={-1}>
        <Outlet />
      </main>
      {drawer && (
        <Dialog title={repository.data?.name ?? slug} open onClose={() => setDrawer(false)}>
          <Navigation onGo={() => setDrawer(false)} />
          <Activity />
        </Dialog>
      )}
      <Suspense>
        {palette && <Palette onClose={() => setPalette(false)} can={can} />}
        {help && <KeyHelp onClose={() => setHelp(false)} />}
      </Suspense>
    </div>
  );
}
