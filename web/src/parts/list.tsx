//! Lists of any length: only the rows in view are in the page, further ones are asked for when they come near.

import { useWindowVirtualizer } from "@tanstack/react-virtual";
import { type ReactNode, useEffect, useLayoutEffect, useRef, useState } from "react";
import type { Pages } from "../app/queries";
import { useKeys } from "../app/keys";
import { count, t } from "../words";
import { Failure, Skeleton } from "./states";
import { Button } from "./button";
import "./list.css";

/** Lists up to this length are in the page as a whole, so that browsers can search in them. */
const WHOLE = 60;

export function LongList<T>({ pages, row, id, label, height = 64, empty, plain, still }: { pages: Pages<T>; row: (item: T, index: number) => ReactNode; id: (item: T) => string; label: string; height?: number; empty: ReactNode; plain?: boolean; still?: boolean }) {
  const { rows, isPending, error, refetch, hasNextPage, isFetchingNextPage, fetchNextPage } = pages;
  const list = useRef<HTMLUListElement>(null);
  const [offset, setOffset] = useState(0);
  const at = useRef(-1);
  // A list that scrolls inside of something else stays as it is.
  const virtual = !still && rows.length > WHOLE;
  useLayoutEffect(() => {
    if (list.current) setOffset(list.current.getBoundingClientRect().top + scrollY);
  }, [rows.length > 0]);
  const virtualizer = useWindowVirtualizer({
    count: rows.length,
    estimateSize: () => height,
    overscan: 12,
    scrollMargin: offset,
    getItemKey: (index) => id(rows[index] as T),
    enabled: virtual,
  });
  const items = virtualizer.getVirtualItems();
  const last = items.at(-1)?.index ?? 0;
  useEffect(() => {
    if (virtual && last > rows.length - 20 && hasNextPage && !isFetchingNextPage && !pages.isFetchNextPageError) void fetchNextPage();
  }, [virtual, last, rows.length, hasNextPage, isFetchingNextPage, fetchNextPage, pages.isFetchNextPageError]);

  const go = (to: number) => {
    const index = Math.max(0, Math.min(rows.length - 1, to));
    at.current = index;
    if (virtual) virtualizer.scrollToIndex(index, { align: "auto" });
    const focus = () => {
      const item = list.current?.querySelector<HTMLElement>(`[data-index="${index}"]`);
      item?.scrollIntoView({ block: "nearest" });
      item?.querySelector<HTMLElement>("[data-main], a, button")?.focus();
      return item !== null && item !== undefined;
    };
    // A row that was not in view is in the page a moment later.
    if (!focus()) requestAnimationFrame(focus);
  };
  useKeys({ j: () => go(at.current + 1), k: () => go(at.current - 1) }, rows.length > 0);
  const focused = (event: React.FocusEvent) => {
    const item = (event.target as HTMLElement).closest<HTMLElement>("[data-index]");
    if (item?.dataset.index) at.current = Number(item.dataset.index);
  };

  if (isPending) return <Skeleton height={height} />;
  if (error && rows.length === 0) return <Failure error={error} retry={() => void refetch()} />;
  if (rows.length === 0) return <>{empty}</>;
  return (
    <div className={`longlist${plain ? " plain" : " card flush"}${still ? " still" : ""}`} data-stale={pages.isPlaceholderData || undefined}>
      <ul ref={list} aria-label={label} onFocus={focused} className={virtual ? "virtual" : undefined} style={virtual ? { height: virtualizer.getTotalSize() } : undefined}>
        {virtual
          ? items.map((item) => (
              <li key={item.key} ref={virtualizer.measureElement} data-index={item.index} aria-setsize={hasNextPage ? -1 : rows.length} aria-posinset={item.index + 1} style={{ transform: `translateY(${item.start - offset}px)` }}>
                {row(rows[item.index] as T, item.index)}
              </li>
            ))
          : rows.map((item, index) => (
              <li key={id(item)} data-index={index}>
                {row(item, index)}
              </li>
            ))}
      </ul>
      {(hasNextPage || rows.length > WHOLE) && (
        <p className="longlist-foot soft small">
          {hasNextPage ? t("{n} loaded, more below", { n: rows.length }) : t("All {n}", { n: rows.length })}
          {hasNextPage && (
            <Button small onPress={() => void fetchNextPage()} busy={isFetchingNextPage}>
              {pages.isFetchNextPageError ? t("Try again") : t("Load more")}
            </Button>
          )}
        </p>
      )}
    </div>
  );
}

/** `1,204+` while there is more. */
export const atLeast = (n: number, more: boolean | undefined) => count(n) + (more ? "+" : "");
