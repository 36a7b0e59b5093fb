//! Go to a place, find something, do something: one box.

import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { type KeyboardEvent, useDeferredValue, useId, useState } from "react";
import { api, ok, R } from "../api/client";
import { Dialog } from "../parts/overlay";
import { t } from "../words";
import { type Right, useCanHere, useRepo, useRepositories } from "./queries";
import { setTheme } from "./theme";
import "./palette.css";

type Entry = { id: string; text: string; kind: string; act: () => void };

export default function Palette({ onClose, can }: { onClose: () => void; can: (right: Right) => boolean }) {
  const slug = useRepo();
  const navigate = useNavigate();
  const here = useCanHere();
  const [text, setText] = useState("");
  const [at, setAt] = useState(0);
  const id = useId();
  const asked = useDeferredValue(text.trim());
  const { data: repositories } = useRepositories();
  const { data: found } = useQuery({
    queryKey: ["palette", slug, asked],
    enabled: asked.length > 1,
    placeholderData: keepPreviousData,
    queryFn: ({ signal }) => ok(api.GET(`${R}/search`, { params: { path: { repoID: slug }, query: { q: asked, prefix: true, mode: "lexical", limit: 8 } }, signal })),
  });
  const params = { slug };
  const keeping = [
    ["/r/$slug/cost", t("Cost"), "ai_usage:read"],
    ["/r/$slug/exchange", t("Import and export"), "graph:export"],
    ["/r/$slug/members", t("Members"), "member:read"],
    ["/r/$slug/settings", t("Settings"), "repository:manage"],
    ["/r/$slug/audit", t("Audit"), "audit:read"],
  ] as const;
  const places: Entry[] = [
    { id: "sources", text: t("Sources"), kind: t("Go to"), act: () => navigate({ to: "/r/$slug/sources", params }) },
    { id: "search", text: t("Search"), kind: t("Go to"), act: () => navigate({ to: "/r/$slug/search", params }) },
    { id: "asking", text: t("Ask"), kind: t("Go to"), act: () => navigate({ to: "/r/$slug/ask", params }) },
    { id: "facts", text: t("Facts"), kind: t("Go to"), act: () => navigate({ to: "/r/$slug/facts", params }) },
    { id: "concepts", text: t("Concepts"), kind: t("Go to"), act: () => navigate({ to: "/r/$slug/concepts", params }) },
    { id: "contradictions", text: t("Contradictions"), kind: t("Go to"), act: () => navigate({ to: "/r/$slug/contradictions", params }) },
    { id: "investigations", text: t("Investigations"), kind: t("Go to"), act: () => navigate({ to: "/r/$slug/investigations", params }) },
    { id: "reports", text: t("Reports"), kind: t("Go to"), act: () => navigate({ to: "/r/$slug/reports", params }) },
    { id: "graph", text: t("Graph"), kind: t("Go to"), act: () => navigate({ to: "/r/$slug/graph", params }) },
    { id: "history", text: t("History"), kind: t("Go to"), act: () => navigate({ to: "/r/$slug/history", params }) },
    { id: "jobs", text: t("Jobs"), kind: t("Go to"), act: () => navigate({ to: "/r/$slug/jobs", params }) },
    ...keeping.filter(([, , right]) => can(right)).map(([to, name]) => ({ id: to, text: name, kind: t("Go to"), act: () => void navigate({ to, params }) })),
    { id: "account", text: t("Account and sessions"), kind: t("Go to"), act: () => navigate({ to: "/account" }) },
    { id: "keys", text: t("Keys and programs"), kind: t("Go to"), act: () => navigate({ to: "/account/keys" }) },
    ...(here("user:read") ? [{ id: "admin", text: t("Installation"), kind: t("Go to"), act: () => navigate({ to: "/admin" }) }] : []),
    ...(can("source:write") ? [{ id: "add", text: t("Add sources"), kind: t("Do"), act: () => navigate({ to: "/r/$slug/sources", params, search: { add: "1" } }) }] : []),
    { id: "light", text: t("Light"), kind: t("Do"), act: () => setTheme("light") },
    { id: "dark", text: t("Dark"), kind: t("Do"), act: () => setTheme("dark") },
    ...(repositories?.data ?? [])
      .filter((one) => one.slug !== slug)
      .map((one) => ({ id: one.id, text: one.name, kind: t("Repository"), act: () => navigate({ to: "/r/$slug/sources", params: { slug: one.slug } }) })),
  ];
  const lower = text.trim().toLowerCase();
  const entries: Entry[] = places.filter((one) => lower === "" || one.text.toLowerCase().includes(lower));
  if (lower !== "") {
    for (const hit of asked.length > 1 ? (found?.data ?? []) : []) {
      const open = () => {
        if (hit.type === "facts") void navigate({ to: "/r/$slug/facts/$id", params: { slug, id: hit.id } });
        else if (hit.type === "concepts") void navigate({ to: "/r/$slug/concepts/$id", params: { slug, id: hit.id } });
        else if (hit.type === "reports") void navigate({ to: "/r/$slug/reports/$id", params: { slug, id: hit.id } });
        else void navigate({ to: "/r/$slug/sources/$id", params: { slug, id: hit.id } });
      };
      const kinds: Record<string, string> = { facts: t("Fact"), concepts: t("Concept"), sources: t("Source"), reports: t("Report") };
      const name = hit.type === "sources" || hit.type === "reports" ? hit.title || hit.text : hit.text;
      entries.push({ id: `${hit.type}-${hit.id}`, text: name, kind: kinds[hit.type] ?? "", act: open });
    }
    entries.push({ id: "ask", text: t("Search for “{q}”", { q: text.trim() }), kind: t("Search"), act: () => void navigate({ to: "/r/$slug/search", params, search: { q: text.trim() } }) });
    entries.push({ id: "question", text: t("Ask: “{q}”", { q: text.trim() }), kind: t("Ask"), act: () => void navigate({ to: "/r/$slug/ask", params, search: { q: text.trim() } }) });
  }
  const active = Math.min(at, entries.length - 1);
  const run = (entry: Entry | undefined) => {
    if (!entry) return;
    onClose();
    entry.act();
  };
  const press = (event: KeyboardEvent) => {
    if (event.key === "ArrowDown") setAt(Math.min(active + 1, entries.length - 1));
    else if (event.key === "ArrowUp") setAt(Math.max(active - 1, 0));
    else if (event.key === "Enter") run(entries[active]);
    else return;
    event.preventDefault();
  };
  return (
    <Dialog title={t("Go to, search, do")} open onClose={onClose}>
      <div className="stack tight">
        <input
          className="input"
          type="search"
          autoFocus
          role="combobox"
          aria-expanded
          aria-controls={id}
          aria-activedescendant={entries[active] ? `${id}-${active}` : undefined}
          aria-label={t("Go to, search, do")}
          value={text}
          onKeyDown={press}
          onChange={(event) => {
            setText(event.target.value);
            setAt(0);
          }}
        />
        <ul className="palette" role="listbox" id={id} aria-label={t("What is found")}>
          {entries.map((entry, index) => (
            // The keys are those of the box above.
            <li key={entry.id} id={`${id}-${index}`} role="option" aria-selected={index === active} className="palette-entry" onClick={() => run(entry)} onMouseMove={() => setAt(index)} ref={index === active ? (item) => item?.scrollIntoView({ block: "nearest" }) : undefined}>
              <span className="clip">{entry.text}</span>
              <span className="soft small">{entry.kind}</span>
            </li>
          ))}
        </ul>
      </div>
    </Dialog>
  );
}
