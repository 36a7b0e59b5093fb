//! What a question is narrowed to, chosen in a dialog.

import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { useDeferredValue, useState } from "react";
import { api, ok, R } from "../api/client";
import { useRepo } from "../app/queries";
import { Button } from "../parts/button";
import { sourceTitle } from "../parts/fact";
import { Checkbox, Field, Form, Select } from "../parts/form";
import { Dialog } from "../parts/overlay";
import { t } from "../words";
import { type Filters, useNames } from "./ask-box";

const SHOWN = 6;
const MOST = { sources: 20, concepts: 8 };

export function Narrow({ filters, onChange, onClose }: { filters: Filters; onChange: (filters: Filters) => void; onClose: () => void }) {
  const repoID = useRepo();
  const [given, setGiven] = useState(filters);
  const [years, setYears] = useState({ from: String(filters.from ?? ""), to: String(filters.to ?? "") });
  const names = useNames(given);
  const biggest = useQuery({
    queryKey: ["concepts", repoID, "contexts"],
    staleTime: 300_000,
    queryFn: ({ signal }) => ok(api.GET(`${R}/concepts`, { params: { path: { repoID }, query: { sort: "fact_count", show_small: true, limit: 200 } }, signal })),
  });
  const contexts = [...new Set([...(biggest.data?.data.map((one) => one.context) ?? []), ...(given.context ? [given.context] : [])])].sort();
  const year = (text: string) => (/^\d{1,4}$/.test(text.trim()) ? Number(text) : undefined);
  const bad = (text: string) => text.trim() !== "" && year(text) === undefined;
  const wrong = bad(years.from) || bad(years.to);
  const apply = () => {
    if (wrong) return;
    onChange({ ...given, from: year(years.from), to: year(years.to) });
    onClose();
  };
  const toggle = (kind: "sources" | "concepts", id: string) => {
    const had = given[kind].includes(id);
    setGiven({ ...given, [kind]: had ? given[kind].filter((one) => one !== id) : [...given[kind], id].slice(0, MOST[kind]) });
  };
  return (
    <Dialog title={t("Narrow the question")} open onClose={onClose}>
      <Form onSubmit={apply}>
        <Picker
          label={t("Only facts that speak of all of these concepts")}
          hint={t("The name of a concept")}
          chosen={names.filter((one) => one.kind === "concept")}
          toggle={(id) => toggle("concepts", id)}
          read={async (q, signal) => {
            const { data } = await ok(api.GET(`${R}/concepts`, { params: { path: { repoID }, query: { q: q || undefined, show_small: q !== "" || undefined, limit: SHOWN } }, signal }));
            return data.map((one) => ({ id: one.id, name: one.canonical_name }));
          }}
          of="concepts"
        />
        <Picker
          label={t("Only facts of any of these sources")}
          hint={t("Title, author, text, address or DOI")}
          chosen={names.filter((one) => one.kind === "source")}
          toggle={(id) => toggle("sources", id)}
          read={async (q, signal) => {
            const { data } = await ok(api.GET(`${R}/sources`, { params: { path: { repoID }, query: { q: q || undefined, limit: SHOWN } }, signal }));
            return data.map((one) => ({ id: one.id, name: sourceTitle(one) }));
          }}
          of="sources"
        />
        {contexts.length > 1 && <Select label={t("Context")} value={given.context ?? ""} onChange={(context) => setGiven({ ...given, context: context || undefined })} options={[["", t("All contexts")], ...contexts.map((one) => [one, one] as const)]} />}
        <div className="row ask-years">
          <Field label={t("Published from")} inputMode="numeric" placeholder="1990" value={years.from} onChange={(from) => setYears({ ...years, from })} error={bad(years.from) ? t("This is no year.") : undefined} />
          <Field label={t("Published until")} inputMode="numeric" placeholder="2024" value={years.to} onChange={(to) => setYears({ ...years, to })} error={bad(years.to) ? t("This is no year.") : undefined} />
        </div>
        <div className="row dialog-buttons">
          <Button onPress={onClose}>{t("Cancel")}</Button>
          <Button primary type="submit" isDisabled={wrong}>
            {t("Narrow")}
          </Button>
        </div>
      </Form>
    </Dialog>
  );
}

type Named = { id: string; name: string };

function Picker({ label, hint, chosen, toggle, read, of }: { label: string; hint: string; chosen: Named[]; toggle: (id: string) => void; read: (q: string, signal: AbortSignal) => Promise<Named[]>; of: string }) {
  const repoID = useRepo();
  const [typed, setTyped] = useState("");
  const q = useDeferredValue(typed.trim());
  const found = useQuery({ queryKey: ["ask-narrow", repoID, of, q], placeholderData: keepPreviousData, queryFn: ({ signal }) => read(q, signal) });
  const rest = (found.data ?? []).filter((one) => !chosen.some(({ id }) => id === one.id));
  return (
    <fieldset className="plain-fields">
      <legend>{label}</legend>
      <input type="search" className="input" aria-label={label} placeholder={hint} value={typed} onChange={(event) => setTyped(event.target.value)} onKeyDown={(event) => event.key === "Enter" && event.preventDefault()} />
      {[...chosen.map((one) => ({ ...one, on: true })), ...rest.map((one) => ({ ...one, on: false }))].map(({ id, name, on }) => (
        <Checkbox key={id} checked={on} onChange={() => toggle(id)}>
          <span className="break">{name}</span>
        </Checkbox>
      ))}
      {found.data && rest.length === 0 && chosen.length === 0 && <p className="soft small">{t("Nothing is found")}</p>}
    </fieldset>
  );
}
