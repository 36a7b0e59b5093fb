//! The text of a source that is no PDF, with its cited sentences underlined.

import { useQuery } from "@tanstack/react-query";
import { type RefObject, useEffect, useImperativeHandle, useMemo, useRef } from "react";
import { api, ok, R, type Schemas } from "../api/client";
import { useRepo } from "../app/queries";
import { Failure, Skeleton } from "../parts/states";
import { t } from "../words";
import type { Searchable } from "./find";
import { mark, textOf, unmark } from "./find-marks";
import { paragraphs } from "./paragraphs";
import type { Finding } from "./pdf";

export type TextHandle = { show: (sentence: number) => void };
/** Cited sentences are asked for in so many pages of 200 at most. */
const MOST_PAGES = 50;

export function Text({ source, chosen, evidence, onChoose, handle, onReady, finding, onSearchable }: { finding: Finding; onSearchable: (document: Searchable | null) => void; source: Schemas["Source"]; chosen: string | undefined; evidence: ReadonlySet<number>; onChoose: (fact: string) => void; handle: RefObject<TextHandle | null>; onReady: () => void }) {
  const repoID = useRepo();
  const path = { repoID, sourceID: source.id };
  const box = useRef<HTMLDivElement>(null);
  const text = useQuery({
    queryKey: ["source-text", repoID, source.id, source.sha256],
    staleTime: Number.POSITIVE_INFINITY,
    queryFn: ({ signal }) => ok(api.GET(`${R}/sources/{sourceID}`, { params: { path, query: { include: "text,sentences" } }, signal })),
  });
  const cited = useQuery({
    queryKey: ["source-facts", repoID, source.id, "cited"],
    staleTime: 60_000,
    queryFn: async ({ signal }) => {
      const facts = new Map<number, string[]>();
      let cursor: string | undefined;
      for (let n = 0; n < MOST_PAGES; n += 1) {
        const found = await ok(api.GET(`${R}/sources/{sourceID}/references`, { params: { path, query: { cited: true, limit: 200, cursor } }, signal }));
        for (const one of found.data) facts.set(one.sentence_index, one.facts.map((fact) => fact.fact_id));
        cursor = found.next_cursor ?? undefined;
        if (!cursor) break;
      }
      return facts;
    },
  });
  const wanted = useRef<number | null>(null);
  const scroll = () => {
    const element = wanted.current === null ? null : box.current?.querySelector<HTMLElement>(`[data-sentence="${wanted.current}"]`);
    if (!element) return;
    wanted.current = null;
    element.scrollIntoView({ block: "center" });
  };
  useImperativeHandle(handle, () => ({
    show(sentence) {
      wanted.current = sentence;
      scroll();
    },
  }));
  const ready = useRef(onReady);
  ready.current = onReady;
  useEffect(() => {
    if (!text.data) return;
    scroll();
    ready.current();
  }, [text.data]);
  const parts = useMemo(() => paragraphs(text.data?.parsed_text ?? "", text.data?.sentence_offsets ?? []), [text.data]);
  const paper = useRef<HTMLDivElement>(null);
  const searchable = useRef(onSearchable);
  searchable.current = onSearchable;
  useEffect(() => {
    if (!text.data) return;
    searchable.current({ pages: 1, text: async () => (paper.current ? textOf(paper.current).text : "") });
    return () => searchable.current(null);
  }, [text.data]);
  useEffect(() => {
    const container = paper.current;
    if (!container) return;
    const range = mark(container, finding.asked, finding.place?.nth ?? null);
    const at = range?.getBoundingClientRect();
    const view = box.current?.getBoundingClientRect();
    if (box.current && at && view && (at.top < view.top + 40 || at.bottom > view.bottom - 40)) box.current.scrollTop += at.top - view.top - view.height / 3;
    return () => unmark(container);
    // Marks stand in nodes that are made anew when a sentence is lit.
  }, [text.data, finding, chosen, cited.data, evidence]);
  if (text.isPending) return <Skeleton rows={10} height={48} />;
  if (text.error) return <Failure error={text.error} retry={() => void text.refetch()} />;
  return (
    <div className="reader-text" ref={box} tabIndex={0} role="region" aria-label={t("Document")}>
      <div ref={paper} className="reader-paper serif" lang={source.language ?? undefined}>
        {parts.map((paragraph, n) => (
          <p key={n}>
            {paragraph.map((piece, m) => {
              if (piece.index === null) return <span key={m}>{piece.text}</span>;
              const facts = cited.data?.get(piece.index) ?? [];
              const lit = evidence.has(piece.index) || (chosen !== undefined && facts.includes(chosen));
              const next = facts[(facts.indexOf(chosen ?? "") + 1) % Math.max(1, facts.length)];
              const name = lit ? "sentence lit" : facts.length > 0 ? "sentence cited" : "sentence";
              return lit ? (
                <mark key={m} data-sentence={piece.index} className={name} onClick={next ? () => onChoose(next) : undefined}>
                  {piece.text}
                </mark>
              ) : (
                <span key={m} data-sentence={piece.index} className={name} onClick={next ? () => onChoose(next) : undefined}>
                  {piece.text}
                </span>
              );
            })}
          </p>
        ))}
      </div>
    </div>
  );
}
