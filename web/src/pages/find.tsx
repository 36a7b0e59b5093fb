//! Finds words in the document that is open, page by page.

import { ChevronDown, ChevronUp, X } from "lucide-react";
import { type KeyboardEvent, useEffect, useMemo, useRef, useState } from "react";
import { Button } from "../parts/button";
import { t, tn } from "../words";
import { folded, matches, question } from "./find-matches";

/** What can be searched: pages of text. */
export type Searchable = { pages: number; text: (page: number) => Promise<string> };
/** One of the places that were found: the `nth` of its page. */
export type Place = { page: number; nth: number };

export default function Find({ document: searched, asked, near, onAsk, onPlace, onClose }: { document: Searchable | null; asked: string; near: number; onAsk: (text: string) => void; onPlace: (place: Place | null) => void; onClose: () => void }) {
  const [text, setText] = useState(asked);
  const [found, setFound] = useState<ReadonlyMap<number, number>>(new Map());
  const [read, setRead] = useState(0);
  const [at, setAt] = useState<Place | null>(null);
  const input = useRef<HTMLInputElement>(null);
  const first = useRef(near);
  first.current = near;
  const words = question(asked);
  const told = useRef(onPlace);
  told.current = onPlace;
  const go = (place: Place | null) => {
    setAt(place);
    told.current(place);
  };

  useEffect(() => {
    const timer = setTimeout(() => text !== asked && onAsk(text), 200);
    return () => clearTimeout(timer);
  }, [text, asked, onAsk]);

  // Pages are read one after the other, those from the shown one on first.
  const pagesRead = useRef<{ of: Searchable | null; texts: Map<number, string> }>({ of: null, texts: new Map() });
  useEffect(() => {
    setFound(new Map());
    setRead(0);
    go(null);
    if (!searched || words === "") return;
    if (pagesRead.current.of !== searched) pagesRead.current = { of: searched, texts: new Map() };
    const { texts } = pagesRead.current;
    let gone = false;
    void (async () => {
      let chosen = false;
      const start = Math.min(Math.max(1, first.current), searched.pages);
      const sums = new Map<number, number>();
      for (let n = 0; n < searched.pages && !gone; n += 1) {
        const page = ((start - 1 + n) % searched.pages) + 1;
        const known = texts.get(page) ?? (await searched.text(page).catch(() => ""));
        texts.set(page, known);
        const here = matches(folded(known), words).length;
        if (gone) return;
        if (here > 0) {
          sums.set(page, here);
          setFound(new Map(sums));
          if (!chosen) {
            chosen = true;
            go({ page, nth: 0 });
          }
        }
        if (n % 10 === 9 || n === searched.pages - 1) setRead(n + 1);
      }
    })();
    return () => {
      gone = true;
    };
  }, [searched, words]);
  useEffect(() => {
    input.current?.focus();
  }, []);

  const pages = useMemo(() => [...found.keys()].sort((a, b) => a - b), [found]);
  const total = useMemo(() => [...found.values()].reduce((sum, n) => sum + n, 0), [found]);
  const before = at ? pages.filter((page) => page < at.page).reduce((sum, page) => sum + (found.get(page) ?? 0), 0) + at.nth + 1 : 0;
  const reading = searched === null || (words !== "" && read < searched.pages);
  const step = (by: 1 | -1) => {
    if (!at || pages.length === 0) return;
    const next = at.nth + by;
    if (next >= 0 && next < (found.get(at.page) ?? 0)) return go({ page: at.page, nth: next });
    const index = pages.indexOf(at.page) + by;
    const page = pages[(index + pages.length) % pages.length] as number;
    go({ page, nth: by > 0 ? 0 : (found.get(page) ?? 1) - 1 });
  };
  const press = (event: KeyboardEvent) => {
    if (event.key === "Enter") step(event.shiftKey ? -1 : 1);
    else if (event.key === "Escape") onClose();
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  return (
    <search className="find" aria-label={t("Find in the document")}>
      <input ref={input} type="search" className="input" aria-label={t("Find in the document")} placeholder={t("Find in the document")} value={text} onChange={(event) => setText(event.target.value)} onKeyDown={press} />
      <span className="find-sum small soft" role="status">
        {words === "" ? "" : total > 0 ? `${t("{n} of {total}", { n: before, total })}${reading ? " …" : ""}` : reading ? t("Page {n} of {total}", { n: read, total: searched?.pages ?? 0 }) : t("Nothing found")}
        <span className="unseen">{at ? t("Page {n}", { n: at.page }) : ""}</span>
      </span>
      <Button small quiet onPress={() => step(-1)} isDisabled={total === 0} aria-label={t("Previous place")}>
        <ChevronUp aria-hidden />
      </Button>
      <Button small quiet onPress={() => step(1)} isDisabled={total === 0} aria-label={t("Next place")}>
        <ChevronDown aria-hidden />
      </Button>
      {pages.length > 1 && <span className="soft small wide-only">{tn(pages.length, "on {n} page", "on {n} pages")}</span>}
      <span className="grow" />
      <Button small quiet onPress={onClose} aria-label={t("Close")}>
        <X aria-hidden />
      </Button>
    </search>
  );
}
