//! The reader: a document, and beside it what was found in it. Every claim opens to its sentence, lit where it stands.

import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useNavigate, useParams, useSearch } from "@tanstack/react-router";
import { ChevronLeft, ChevronRight, Download, Search, TriangleAlert } from "lucide-react";
import { lazy, type PointerEvent, Suspense, useCallback, useEffect, useMemo, useRef, useState } from "react";
import { api, ok, R, type Schemas } from "../api/client";
import { download, fileName } from "../app/download";
import { useJobs } from "../app/events";
import { useKeys } from "../app/keys";
import { useAct, useCan, useRepo } from "../app/queries";
import { complain, say } from "../app/toasts";
import { useTitle } from "../app/title";
import { script } from "../app/scripts";
import { Badge, SourceStatus, waitingFor } from "../parts/badges";
import { Button } from "../parts/button";
import { sourceTitle } from "../parts/fact";
import { Menu, MenuItem } from "../parts/overlay";
import { Empty, Failure, Skeleton } from "../parts/states";
import { count, t, tn } from "../words";
import type { Place, Searchable } from "./find";
import { question } from "./find-matches";
import type { PdfHandle } from "./pdf";
import { ChosenFact, FactsPane, type Quote } from "./reader-side";
import { DeleteSources, MarkSource, ProcessSource } from "./sources-acts";
import { Text, type TextHandle } from "./text";
import "./sources.css";
import "./reader.css";

const Pdf = lazy(() => script(() => import("./pdf")));
const Find = lazy(() => script(() => import("./find")));
const WIDTH = "okt-reader-width";
/** Cited sentences that are counted for the bar of pages. */
const COUNTED = 10;

const ENDINGS: Record<Schemas["SourceKind"], string> = { html: "html", pdf: "pdf", text: "txt", markdown: "md" };

type Source = Schemas["Source"];

function storedWidth(): number {
  try {
    const stored = Number(localStorage.getItem(WIDTH));
    if (stored >= 20 && stored <= 60) return stored;
  } catch {
    // Storage can be off.
  }
  return 36;
}

export default function Reader() {
  const repoID = useRepo();
  const { id } = useParams({ from: "/r/$slug/sources/$id" });
  const source = useQuery({
    queryKey: ["source", repoID, id],
    queryFn: ({ signal }) => ok(api.GET(`${R}/sources/{sourceID}`, { params: { path: { repoID, sourceID: id }, query: { include: "" } }, signal })),
    refetchInterval: (query) => (query.state.data && !["processed", "failed"].includes(query.state.data.status) ? 20_000 : false),
  });
  useTitle(source.data ? sourceTitle(source.data) : undefined);
  if (source.isPending) return <div className="page"><Skeleton rows={10} /></div>;
  if (source.error && !source.data) return <div className="page"><Failure whole error={source.error} retry={() => void source.refetch()} /></div>;
  return <Open source={source.data} key={id} />;
}

function Open({ source }: { source: Source }) {
  const repoID = useRepo();
  const can = useCan();
  const client = useQueryClient();
  const search = useSearch({ from: "/r/$slug/sources/$id" });
  const navigate = useNavigate({ from: "/r/$slug/sources/$id" });
  const [wide, setWide] = useState(storedWidth);
  const [pane, setPane] = useState<"document" | "facts">("document");
  const [broken, setBroken] = useState<string | null>(null);
  const [page, setPage] = useState(search.page ?? 1);
  const [at, setAt] = useState(0);
  const [act, setAct] = useState<"delete" | "mark" | "process" | null>(null);
  const pdf = useRef<PdfHandle | null>(null);
  const text = useRef<TextHandle | null>(null);
  const [finds, setFinds] = useState(search.find !== undefined);
  const [searched, setDocument] = useState<Searchable | null>(null);
  const [place, setPlace] = useState<Place | null>(null);
  const asked = finds ? question(search.find ?? "") : "";
  const finding = useMemo(() => ({ asked, place }), [asked, place]);
  const ask = useCallback((find: string) => void navigate({ search: (old) => ({ ...old, find: find || undefined }), replace: true }), [navigate]);
  const endFind = () => {
    setFinds(false);
    setPlace(null);
    ask("");
    document.querySelector<HTMLElement>(".reader-doc [tabindex='0']")?.focus();
  };
  const view = search.view ?? "facts";
  const chosen = search.fact;
  const hasText = !["pending", "fetching"].includes(source.status) && !(source.status === "failed" && source.failure?.stage !== "decomposition");
  const asPdf = source.kind === "pdf" && source.has_stored_body && broken === null;
  const title = sourceTitle(source);

  const fact = useQuery({
    queryKey: ["fact", repoID, chosen],
    enabled: chosen !== undefined,
    queryFn: ({ signal }) => ok(api.GET(`${R}/facts/{factID}`, { params: { path: { repoID, factID: chosen ?? "" } }, signal })),
  });
  const quotes = useMemo<Quote[]>(() => {
    if (!fact.data || fact.data.id !== chosen) return [];
    const all = fact.data.sources.filter((one) => one.source_id === source.id).flatMap((one) => one.sentences);
    return all.map((one) => ({ index: one.sentence_index, page: one.page, text: one.text ?? "" }));
  }, [fact.data, chosen, source.id]);
  const evidence = useMemo(() => new Set(quotes.map((quote) => quote.index)), [quotes]);
  const quote = quotes[Math.min(at, quotes.length - 1)];

  // Asked for before the document was there.
  const wanted = useRef<Quote | undefined>(undefined);
  const show = useCallback((to: Quote | undefined) => {
    if (!to) return;
    wanted.current = pdf.current ? undefined : to;
    if (to.page) pdf.current?.show(to.page, to.index);
    text.current?.show(to.index);
  }, []);
  // The first sentence of a fact that was chosen, or the page of the address.
  const shown = useRef("");
  useEffect(() => {
    const key = `${chosen ?? ""} ${quotes.length > 0} ${asPdf}`;
    if (shown.current === key) return;
    if (quotes.length > 0) {
      shown.current = key;
      setAt(0);
      show(quotes[0]);
    } else if (!chosen && search.page && shown.current === "") {
      shown.current = key;
      pdf.current?.show(search.page);
    }
  });
  const latest = useRef({ first: quotes[0], page: search.page });
  latest.current = { first: quotes[0], page: search.page };
  // The document comes later than the rest of the page.
  const register = useCallback(
    (handle: PdfHandle | null) => {
      pdf.current = handle;
      if (handle && wanted.current) show(wanted.current);
      else if (latest.current.first) show(latest.current.first);
      else if (latest.current.page) handle?.show(latest.current.page);
    },
    [show],
  );

  const choose = useCallback(
    (next: string | undefined) => {
      void navigate({ search: (old) => ({ ...old, fact: next, page: undefined }), replace: true });
      if (next && innerWidth <= 768) setPane("document");
    },
    [navigate],
  );
  const chooseIn = useCallback(
    (next: string) => {
      shown.current = `${next} true ${asPdf}`;
      setAt(0);
      void navigate({ search: (old) => ({ ...old, fact: next, page: undefined, view: undefined }), replace: true });
    },
    [navigate, asPdf],
  );
  const step = (by: number) => {
    if (quotes.length === 0) return;
    const next = (Math.min(at, quotes.length - 1) + by + quotes.length) % quotes.length;
    setAt(next);
    show(quotes[next]);
  };
  const goPage = (to: number) => {
    const most = source.pages.length || 1;
    pdf.current?.show(Math.max(1, Math.min(most, to)));
  };
  const copy = async () => {
    const said = quote?.text ?? fact.data?.text;
    if (!said) return;
    const where = [title, source.published_at?.slice(0, 4), quote?.page ? t("p. {n}", { n: quote.page }) : null, source.doi ? `https://doi.org/${source.doi}` : source.url.startsWith("http") ? source.url : null];
    try {
      await navigator.clipboard.writeText(`“${said}” (${where.filter(Boolean).join(", ")})`);
      say(t("The quote is copied with its source"));
    } catch {
      complain(t("The browser does not let this page copy."));
    }
  };
  const original = () => void download(`api/v1/repositories/${repoID}/sources/${source.id}/body`, source.file_name ?? `${fileName(title)}.${ENDINGS[source.kind ?? "text"]}`);
  useKeys({
    n: () => step(1),
    p: () => step(-1),
    c: () => void copy(),
    f: hasText
      ? () => {
          setPane("document");
          setFinds(true);
          document.querySelector<HTMLInputElement>(".find input")?.select();
        }
      : undefined,
    o: source.has_stored_body ? original : undefined,
    "[": () => {
      setPane("document");
      document.querySelector<HTMLElement>(".reader-doc [tabindex='0']")?.focus();
    },
    "]": () => {
      setPane("facts");
      document.querySelector<HTMLElement>(".reader-side a, .reader-side button")?.focus();
    },
    ArrowLeft: asPdf ? () => goPage(page - 1) : undefined,
    ArrowRight: asPdf ? () => goPage(page + 1) : undefined,
    Escape: finds ? endFind : chosen ? () => choose(undefined) : undefined,
  });

  const drag = (event: PointerEvent<HTMLDivElement>) => {
    const bar = event.currentTarget;
    bar.setPointerCapture(event.pointerId);
    const whole = bar.parentElement?.getBoundingClientRect();
    const move = (now: globalThis.PointerEvent) => {
      if (whole) setWidth(((whole.right - now.clientX) / whole.width) * 100);
    };
    bar.addEventListener("pointermove", move);
    bar.addEventListener("pointerup", () => bar.removeEventListener("pointermove", move), { once: true });
  };
  const setWidth = (to: number) => {
    const next = Math.round(Math.max(20, Math.min(60, to)));
    setWide(next);
    try {
      localStorage.setItem(WIDTH, String(next));
    } catch {
      // Then until the next page.
    }
  };
  const jobs = useJobs();
  const job = [...jobs.values()].findLast((one) => one.source_id === source.id && one.state !== "completed");
  const retry = useAct(() => ok(api.POST(`${R}/sources/{sourceID}/retry`, { params: { path: { repoID, sourceID: source.id } } })), { stale: [["source", repoID, source.id]] });
  const facts = (
    <FactsPane source={source} chosen={chosen} choose={choose} view={view} setView={(next) => void navigate({ search: (old) => ({ ...old, view: next === "facts" ? undefined : next }), replace: true })} onSentence={(sentence, on) => { setPane("document"); show({ index: sentence, page: on, text: "" }); }} />
  );
  return (
    <div className="reader">
      <header className="reader-head">
        <div className="grow">
          <h1 className="clip" title={title}>
            {title}
          </h1>
          <div className="item-more">
            {source.author && <span className="clip source-author">{source.author}</span>}
            {source.published_at && <span>{source.published_at.slice(0, 4)}</span>}
            {source.status !== "processed" && <SourceStatus source={source} job={job} />}
            {source.mark && (
              <Badge tone="wrong" icon={<TriangleAlert size={14} aria-hidden />} title={source.mark.reason ?? undefined}>
                {source.mark.kind === "retracted" ? t("retracted") : t("superseded")}
              </Badge>
            )}
            {source.url.startsWith("http") && (
              <a href={source.url} target="_blank" rel="noreferrer noopener" className="clip source-author">
                {source.doi ?? URL.parse(source.url)?.hostname}
              </a>
            )}
          </div>
        </div>
        {asPdf && source.pages.length > 1 && (
          <span className="row tight nowrap">
            <Button small quiet aria-label={t("Previous page")} onPress={() => goPage(page - 1)}>
              <ChevronLeft aria-hidden />
            </Button>
            <span className="small reader-pages">
              {count(page)} / {count(source.pages.length)}
            </span>
            <Button small quiet aria-label={t("Next page")} onPress={() => goPage(page + 1)}>
              <ChevronRight aria-hidden />
            </Button>
          </span>
        )}
        {hasText && (
          <Button small quiet onPress={() => (finds ? endFind() : (setPane("document"), setFinds(true)))} aria-pressed={finds} aria-label={t("Find in the document")}>
            <Search aria-hidden />
          </Button>
        )}
        {source.has_stored_body && (
          <Button small quiet onPress={original} aria-label={t("The original file")}>
            <Download aria-hidden />
          </Button>
        )}
        {(can("source:update") || can("source:delete")) && (
          <Menu label={t("More for {title}", { title })}>
            {can("source:update") && source.status === "processed" && <MenuItem onAction={() => setAct("process")}>{t("Find facts again …")}</MenuItem>}
            {can("source:update") && <MenuItem onAction={() => setAct("mark")}>{t("Mark as retracted or superseded …")}</MenuItem>}
            {can("source:delete") && (
              <MenuItem danger onAction={() => setAct("delete")}>
                {t("Delete …")}
              </MenuItem>
            )}
          </Menu>
        )}
      </header>
      <div className="reader-switch" role="group" aria-label={t("What is shown")}>
        <Button small quiet className={pane === "document" ? "on" : ""} onPress={() => setPane("document")}>
          {t("Document")}
        </Button>
        <Button small quiet className={pane === "facts" ? "on" : ""} onPress={() => setPane("facts")}>
          {tn(source.fact_count, "{n} fact", "{n} facts")}
        </Button>
      </div>
      <div className="reader-body" style={{ "--side": `${wide}%` } as React.CSSProperties} data-pane={pane}>
        <div className="reader-doc">
          {finds && hasText && (
            <Suspense>
              <Find document={searched} asked={search.find ?? ""} near={page} onAsk={ask} onPlace={setPlace} onClose={endFind} />
            </Suspense>
          )}
          {asPdf && source.pages.length > 1 && <PageBar source={source} page={page} onGo={goPage} />}
          {source.pages.some((one) => one.ocr) && <p className="note warn small reader-note">{t("Some pages are pictures. Their text was recognised and may have mistakes.")}</p>}
          {broken && <p className="note warn small reader-note">{t("The PDF can't be shown ({why}), so here is its text.", { why: broken })}</p>}
          {chosen && quotes.length > 0 && quote && asPdf && quote.page === null && <p className="note small reader-note">{t("It is not known where on the pages this stands.")}</p>}
          {!hasText ? (
            <Waiting source={source} job={job} onRetry={can("source:update") ? () => retry.mutate(undefined) : undefined} />
          ) : asPdf ? (
            <Suspense fallback={<Skeleton rows={8} />}>
              <Pdf repoID={repoID} source={source} chosen={chosen} evidence={evidence} onChoose={chooseIn} onPage={setPage} handle={register} onBroken={setBroken} finding={finding} onSearchable={setDocument} />
            </Suspense>
          ) : (
            <Text source={source} chosen={chosen} evidence={evidence} onChoose={chooseIn} handle={text} onReady={() => show(quotes[0])} finding={finding} onSearchable={setDocument} />
          )}
        </div>
        <div
          className="reader-bar"
          role="separator"
          aria-orientation="vertical"
          aria-label={t("Width of the facts")}
          aria-valuenow={wide}
          aria-valuemin={20}
          aria-valuemax={60}
          tabIndex={0}
          onPointerDown={drag}
          onKeyDown={(event) => {
            if (event.key === "ArrowLeft") setWidth(wide + 2);
            else if (event.key === "ArrowRight") setWidth(wide - 2);
            else return;
            event.stopPropagation();
            event.preventDefault();
          }}
        />
        <aside className="reader-side" aria-label={t("Facts")}>
          {chosen && (
            <div className="reader-chosen">
              {fact.isPending ? (
                <Skeleton rows={1} height={60} />
              ) : fact.error ? (
                <Failure error={fact.error} />
              ) : (
                <ChosenFact fact={fact.data} quote={quote} at={Math.min(at, Math.max(0, quotes.length - 1))} of={quotes.length} step={step} copy={() => void copy()} close={() => choose(undefined)} />
              )}
            </div>
          )}
          {facts}
        </aside>
      </div>
      {act === "delete" && <DeleteSources sources={[source]} onClose={() => setAct(null)} onDone={() => { client.removeQueries({ queryKey: ["source", repoID, source.id] }); void navigate({ to: "/r/$slug/sources", params: { slug: repoID } }); }} />}
      {act === "mark" && <MarkSource source={source} onClose={() => setAct(null)} />}
      {act === "process" && <ProcessSource source={source} onClose={() => setAct(null)} />}
    </div>
  );
}

/** Before there is a text: what happens, and what went wrong. */
function Waiting({ source, job, onRetry }: { source: Source; job?: Schemas["Job"]; onRetry?: () => void }) {
  if (source.status === "failed" && source.failure) {
    return (
      <Empty icon={<TriangleAlert aria-hidden />} title={t("This source could not be read")} action={source.failure.retryable && onRetry ? <Button primary onPress={onRetry}>{t("Try again")}</Button> : undefined}>
        {source.failure.message}
        {source.failure.stage === "fetch" && ` ${t("If you have the file, add it instead.")}`}
      </Empty>
    );
  }
  const waits = source.waiting_for ?? job?.waiting_for;
  return (
    <Empty title={source.status === "pending" ? t("Queued") : t("The file is being fetched and read")}>
      {waits && waits !== "relay" ? waitingFor(waits) : (job?.progress?.message ?? t("This page changes by itself."))}
    </Empty>
  );
}

/** Where in the document facts were found. */
function PageBar({ source, page, onGo }: { source: Source; page: number; onGo: (page: number) => void }) {
  const repoID = useRepo();
  const { data } = useQuery({
    queryKey: ["source-facts", repoID, source.id, "pages"],
    staleTime: 60_000,
    queryFn: async ({ signal }) => {
      const perPage = new Map<number, number>();
      let cursor: string | undefined;
      for (let n = 0; n < COUNTED; n += 1) {
        const found = await ok(api.GET(`${R}/sources/{sourceID}/references`, { params: { path: { repoID, sourceID: source.id }, query: { cited: true, limit: 200, cursor } }, signal }));
        for (const one of found.data) if (one.page) perPage.set(one.page, (perPage.get(one.page) ?? 0) + 1);
        cursor = found.next_cursor ?? undefined;
        if (!cursor) break;
      }
      return perPage;
    },
  });
  const most = Math.max(1, ...(data?.values() ?? []));
  return (
    <nav className="pagebar" aria-label={t("Pages, by how many of their sentences facts rest on")}>
      {source.pages.map(({ number }) => {
        const cited = data?.get(number) ?? 0;
        return (
          <button key={number} type="button" tabIndex={number === page ? 0 : -1} aria-current={number === page ? "page" : undefined} onClick={() => onGo(number)} aria-label={`${t("Page {n}", { n: number })}: ${tn(cited, "{n} cited sentence", "{n} cited sentences")}`} title={`${t("Page {n}", { n: number })}: ${tn(cited, "{n} cited sentence", "{n} cited sentences")}`}>
            <span style={{ width: `${cited === 0 ? 0 : 25 + (75 * cited) / most}%` }} />
          </button>
        );
      })}
    </nav>
  );
}
