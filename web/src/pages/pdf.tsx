//! A PDF with what is known of its sentences drawn on it.

import { useQuery } from "@tanstack/react-query";
import { GlobalWorkerOptions, getDocument, PDFDataRangeTransport, type PDFDocumentLoadingTask, type PDFDocumentProxy, type RenderTask, TextLayer } from "pdfjs-dist";
import workerAddress from "pdfjs-dist/build/pdf.worker.min.mjs?url";
import { type MouseEvent, type Ref, type RefObject, useCallback, useEffect, useImperativeHandle, useLayoutEffect, useMemo, useRef, useState } from "react";
import { api, ok, R, raw, type Schemas } from "../api/client";
import { BASE } from "../api/session";
import { reason } from "../app/queries";
import { t } from "../words";
import { scriptUrl } from "../app/trusted";
import type { Place, Searchable } from "./find";
import { mark, unmark } from "./find-marks";
import { folded, matches } from "./find-matches";
import "./pdf.css";

/** What is read at once of a large file. */
const PIECE = 512 * 1024;
/** So many pages around those in view are kept drawn. */
const NEAR = "120% 0px";
/** A canvas larger than this is drawn coarser: phones refuse it. */
const MOST_PIXELS = 12_000_000;

export type PdfHandle = { show: (page: number, sentence?: number) => void };
/** What is looked for, and the place that is looked at. */
export type Finding = { asked: string; place: Place | null };
type Size = { width: number; height: number };

let worker: Worker | null = null;
/** A worker that ends with one document takes no other one meanwhile. */
let closing: Promise<unknown> = Promise.resolve();
function startWorker() {
  if (worker) return;
  worker = new Worker(scriptUrl(new URL(workerAddress, import.meta.url).href) as string, { type: "module" });
  GlobalWorkerOptions.workerPort = worker;
}

class Ranges extends PDFDataRangeTransport {
  private stop = new AbortController();
  constructor(
    private readonly path: string,
    length: number,
    first: Uint8Array,
  ) {
    super(length, first);
  }
  override requestDataRange(begin: number, end: number) {
    raw(this.path, { headers: { range: `bytes=${begin}-${end - 1}` }, signal: this.stop.signal })
      .then((response) => response.arrayBuffer())
      .then((bytes) => this.onDataRange(begin, new Uint8Array(bytes)))
      .catch(() => {});
  }
  override abort() {
    this.stop.abort();
  }
}

async function openPdf(path: string, signal: AbortSignal): Promise<PDFDocumentLoadingTask> {
  startWorker();
  const response = await raw(path, { headers: { range: `bytes=0-${PIECE - 1}` }, signal });
  const bytes = new Uint8Array(await response.arrayBuffer());
  const total = Number(response.headers.get("content-range")?.split("/")[1] ?? bytes.length);
  const folder = `${BASE}${PDFJS_FOLDER}`;
  const common = { cMapUrl: `${folder}/cmaps/`, cMapPacked: true, standardFontDataUrl: `${folder}/standard_fonts/`, wasmUrl: `${folder}/wasm/`, useWasm: false, isEvalSupported: false, enableXfa: false };
  await closing;
  signal.throwIfAborted();
  if (bytes.length >= total) return getDocument({ ...common, data: bytes });
  return getDocument({ ...common, range: new Ranges(path, total, bytes), rangeChunkSize: PIECE, disableAutoFetch: true, disableStream: true });
}

export default function Pdf({ repoID, source, chosen, evidence, onChoose, onPage, handle, onBroken, finding, onSearchable }: { finding: Finding; onSearchable: (document: Searchable | null) => void; repoID: string; source: Schemas["Source"]; chosen: string | undefined; evidence: ReadonlySet<number>; onChoose: (fact: string) => void; onPage: (page: number) => void; handle: Ref<PdfHandle>; onBroken: (why: string) => void }) {
  const [pdf, setPdf] = useState<PDFDocumentProxy | null>(null);
  const [sizes, setSizes] = useState<Size[]>(source.pages.map(({ width, height }) => ({ width, height })));
  const box = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(0);
  const target = useRef<{ page: number; sentence?: number } | null>(null);
  /** The sentence that was asked for: it is marked although no fact rests on it. */
  const [looked, setLooked] = useState<number | undefined>();
  const broken = useRef(onBroken);
  broken.current = onBroken;

  useEffect(() => {
    const stop = new AbortController();
    let task: PDFDocumentLoadingTask | undefined;
    openPdf(`api/v1/repositories/${repoID}/sources/${source.id}/body`, stop.signal)
      .then(async (started) => {
        task = started;
        if (stop.signal.aborted) closing = started.destroy().catch(() => {});
        const document = await started.promise;
        if (stop.signal.aborted) return;
        if (source.pages.length !== document.numPages) {
          const view = (await document.getPage(1)).getViewport({ scale: 1 });
          setSizes((old) => Array.from({ length: document.numPages }, (_, n) => old[n] ?? { width: view.width, height: view.height }));
        }
        setPdf(document);
      })
      .catch((error: unknown) => {
        if (!stop.signal.aborted) broken.current(reason(error));
      });
    return () => {
      stop.abort();
      if (task) closing = task.destroy().catch(() => {});
    };
  }, [repoID, source.id, source.pages.length]);

  useEffect(() => {
    const element = box.current;
    if (!element) return;
    const watch = new ResizeObserver(() => setWidth(element.clientWidth));
    watch.observe(element);
    setWidth(element.clientWidth);
    return () => watch.disconnect();
  }, []);

  const searchable = useRef(onSearchable);
  searchable.current = onSearchable;
  useEffect(() => {
    if (!pdf) return;
    const recognised = new Set(source.pages.filter((page) => page.ocr).map((page) => page.number));
    searchable.current({
      pages: pdf.numPages,
      async text(number) {
        // A page that is a picture has no letters of its own.
        if (recognised.has(number)) {
          const page = await ok(api.GET(`${R}/sources/{sourceID}/pages/{n}`, { params: { path: { repoID, sourceID: source.id, n: number } } }));
          return page.sentences.map((one) => one.text).join("\n");
        }
        const { items } = await (await pdf.getPage(number)).getTextContent();
        return items.map((one) => ("str" in one ? one.str + (one.hasEOL ? "\n" : "") : "")).join("");
      },
    });
    return () => searchable.current(null);
  }, [pdf, repoID, source.id, source.pages]);
  const { place } = finding;
  useEffect(() => {
    if (!place) return;
    const page = box.current?.querySelector<HTMLElement>(`[data-page="${place.page}"]`);
    // A page in view is scrolled to the place itself.
    if (!page?.querySelector(".textLayer")?.hasChildNodes()) {
      target.current = { page: place.page };
      scroll();
    }
  }, [place]);

  const widest = Math.max(1, ...sizes.map((size) => size.width));
  const scale = width > 0 ? Math.min((width - 24) / widest, 1.7) : 0;

  const scroll = useCallback(() => {
    const wanted = target.current;
    const page = wanted && box.current?.querySelector<HTMLElement>(`[data-page="${wanted.page}"]`);
    if (!wanted || !page || !box.current) return;
    const mark = wanted.sentence === undefined ? null : page.querySelector<HTMLElement>(`[data-sentence="${wanted.sentence}"]`);
    const top = mark ? mark.getBoundingClientRect().top - box.current.clientHeight / 3 : page.getBoundingClientRect().top - 8;
    box.current.scrollTop += top - box.current.getBoundingClientRect().top;
    if (mark || wanted.sentence === undefined) target.current = null;
  }, []);
  useImperativeHandle(
    handle,
    () => ({
      show(page, sentence) {
        target.current = { page, sentence };
        setLooked(sentence);
        scroll();
      },
    }),
    [scroll],
  );
  useLayoutEffect(() => {
    if (scale > 0) scroll();
  }, [scale, sizes.length, scroll]);

  // Whoever moves on is not brought back, be it that a mark never comes.
  const leave = () => {
    target.current = null;
  };
  const seen = useRef(onPage);
  seen.current = onPage;
  const onScroll = () => {
    const element = box.current;
    if (!element || target.current) return;
    const middle = element.getBoundingClientRect().top + element.clientHeight / 3;
    for (const page of element.querySelectorAll<HTMLElement>("[data-page]")) {
      const at = page.getBoundingClientRect();
      if (at.top <= middle && at.bottom >= middle) {
        seen.current(Number(page.dataset.page));
        return;
      }
    }
  };
  return (
    <div className="pdf" ref={box} onScroll={onScroll} onWheel={leave} onTouchStart={leave} onPointerDown={leave} onKeyDown={leave} tabIndex={0} role="region" aria-label={t("Document")}>
      {scale > 0 &&
        sizes.map((size, n) => (
          <Page key={n} number={n + 1} size={size} scale={scale} pdf={pdf} root={box} repoID={repoID} sourceID={source.id} marked={source.pages.length > 0} recognised={source.pages[n]?.ocr === true} asked={finding.asked} nth={place?.page === n + 1 ? place.nth : null} chosen={chosen} evidence={evidence} looked={looked} onChoose={onChoose} onMarks={scroll} />
        ))}
    </div>
  );
}

type Placed = Schemas["SourcePageText"]["sentences"][number];

function Page({ recognised, asked, nth, number, size, scale, pdf, root, repoID, sourceID, marked, chosen, evidence, looked, onChoose, onMarks }: { recognised: boolean; asked: string; nth: number | null; number: number; size: Size; scale: number; pdf: PDFDocumentProxy | null; root: RefObject<HTMLDivElement | null>; repoID: string; sourceID: string; marked: boolean; chosen: string | undefined; evidence: ReadonlySet<number>; looked: number | undefined; onChoose: (fact: string) => void; onMarks: () => void }) {
  const [near, setNear] = useState(false);
  const frame = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const letters = useRef<HTMLDivElement>(null);
  const [drawnAt, setDrawnAt] = useState(0);
  useEffect(() => {
    if (!frame.current) return;
    const watch = new IntersectionObserver(([entry]) => setNear(entry?.isIntersecting ?? false), { root: root.current, rootMargin: NEAR });
    watch.observe(frame.current);
    return () => watch.disconnect();
  }, [root]);

  useEffect(() => {
    if (!near || !pdf) return;
    let gone = false;
    let task: RenderTask | undefined;
    let text: TextLayer | undefined;
    void (async () => {
      const page = await pdf.getPage(number);
      const view = page.getViewport({ scale });
      const drawing = canvas.current;
      const container = letters.current;
      if (gone || !drawing || !container) return;
      const ratio = Math.min(devicePixelRatio || 1, Math.sqrt(MOST_PIXELS / (view.width * view.height)));
      drawing.width = Math.floor(view.width * ratio);
      drawing.height = Math.floor(view.height * ratio);
      task = page.render({ canvas: drawing, viewport: view, transform: ratio === 1 ? undefined : [ratio, 0, 0, ratio, 0, 0] });
      await task.promise;
      if (gone) return;
      container.replaceChildren();
      text = new TextLayer({ textContentSource: page.streamTextContent(), container, viewport: view });
      await text.render();
      if (!gone) setDrawnAt((n) => n + 1);
    })().catch(() => {});
    return () => {
      gone = true;
      task?.cancel();
      text?.cancel();
    };
  }, [near, pdf, number, scale]);

  const { data } = useQuery({
    queryKey: ["source-page", repoID, sourceID, number],
    enabled: near && marked,
    staleTime: 60_000,
    queryFn: ({ signal }) => ok(api.GET(`${R}/sources/{sourceID}/pages/{n}`, { params: { path: { repoID, sourceID, n: number } }, signal })),
  });
  const drawn = useRef(onMarks);
  drawn.current = onMarks;
  // Before anybody sees the marks.
  useLayoutEffect(() => {
    if (data) drawn.current();
  }, [data, evidence, looked]);
  const sentences = useMemo(() => data?.sentences.filter((one) => one.fact_ids.length > 0 || evidence.has(one.index) || one.index === looked) ?? [], [data, evidence, looked]);

  // Of a picture the sentences are marked, of a text the words.
  const hits = useMemo(() => {
    if (!recognised || asked === "") return [];
    let before = 0;
    return (data?.sentences ?? []).flatMap((one) => {
      const here = matches(folded(one.text), asked).length;
      const now = nth !== null && nth >= before && nth < before + here;
      before += here;
      return here > 0 ? [{ ...one, now }] : [];
    });
  }, [recognised, asked, nth, data]);
  useEffect(() => {
    const container = letters.current;
    if (!container || !near || recognised) return;
    const range = mark(container, asked, nth);
    if (range) intoView(range.getBoundingClientRect(), root.current);
    return () => unmark(container);
  }, [drawnAt, near, recognised, asked, nth, root]);
  useEffect(() => {
    const place = frame.current?.querySelector(".pdf-found.now");
    if (place) intoView(place.getBoundingClientRect(), root.current);
  }, [hits]);

  const click = (event: MouseEvent) => {
    if (!frame.current || !getSelection()?.isCollapsed) return;
    const at = frame.current.getBoundingClientRect();
    const x = ((event.clientX - at.left) / at.width) * size.width;
    const y = size.height - ((event.clientY - at.top) / at.height) * size.height;
    const hit = sentences.find((one) => one.fact_ids.length > 0 && one.boxes.some(([x0 = 0, y0 = 0, x1 = 0, y1 = 0]) => x >= x0 && x <= x1 && y >= y0 - 2 && y <= y1 + 2));
    if (!hit) return;
    // The next one of several facts of a sentence.
    const before = chosen ? hit.fact_ids.indexOf(chosen) : -1;
    onChoose(hit.fact_ids[(before + 1) % hit.fact_ids.length] as string);
  };
  return (
    // What a click chooses can be chosen in the list of facts, too.
    <div ref={frame} className="pdf-page" data-page={number} onClick={click} style={{ width: size.width * scale, height: size.height * scale }}>
      {near && <canvas ref={canvas} aria-hidden />}
      {near && <Marks sentences={sentences} size={size} chosen={chosen} evidence={evidence} />}
      {near && hits.length > 0 && (
        <div className="pdf-marks" aria-hidden>
          {hits.flatMap((one) => one.boxes.map((where, n) => <span key={`${one.index} ${n}`} className={one.now ? "pdf-found now" : "pdf-found"} style={placed(where, size)} />))}
        </div>
      )}
      {near && <div ref={letters} className="textLayer" style={{ "--total-scale-factor": scale, "--scale-factor": scale } as React.CSSProperties} />}
      <span className="pdf-number" aria-hidden>
        {number}
      </span>
    </div>
  );
}

/** A rectangle in points from the lower left of the page, as shares of the page. */
function placed([x0 = 0, y0 = 0, x1 = 0, y1 = 0]: readonly number[], size: Size) {
  const percent = (part: number, of: number) => `${(100 * part) / of}%`;
  return { left: percent(x0, size.width), top: percent(size.height - y1, size.height), width: percent(x1 - x0, size.width), height: percent(y1 - y0, size.height) };
}

/** Scrolls only if it is not in view. */
function intoView(place: DOMRect, root: HTMLElement | null) {
  const view = root?.getBoundingClientRect();
  if (!root || !view) return;
  if (place.top < view.top + 40 || place.bottom > view.bottom - 40) root.scrollTop += place.top - view.top - view.height / 3;
  if (place.left < view.left || place.right > view.right) root.scrollLeft += place.left - view.left - view.width / 3;
}

function Marks({ sentences, size, chosen, evidence }: { sentences: Placed[]; size: Size; chosen: string | undefined; evidence: ReadonlySet<number> }) {
  return (
    <div className="pdf-marks" aria-hidden>
      {sentences.flatMap((one) =>
        one.boxes.map((where, n) => {
          const lit = evidence.has(one.index) || (chosen !== undefined && one.fact_ids.includes(chosen));
          return (
            <span
              key={`${one.index} ${n}`}
              data-sentence={one.index}
              className={lit ? "pdf-mark lit" : one.fact_ids.length > 0 ? "pdf-mark" : "pdf-mark looked"}
              style={placed(where, size)}
            />
          );
        }),
      )}
    </div>
  );
}
