//! All facts, by words, state and concept.

import { useQuery } from "@tanstack/react-query";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { Lightbulb } from "lucide-react";
import { api, ok, R, type Schemas } from "../api/client";
import { usePages, useRepo, useRepository } from "../app/queries";
import { useTitle } from "../app/title";
import { useTyped } from "../app/typed";
import { Badge } from "../parts/badges";
import { Button, LinkButton } from "../parts/button";
import { FactRow } from "../parts/fact";
import { Checkbox, Select } from "../parts/form";
import { LongList } from "../parts/list";
import { Empty } from "../parts/states";
import { t } from "../words";

const STATUSES = ["new", "stable", "duplicate", "rejected"] as const;

export default function Facts() {
  const repoID = useRepo();
  const { data: repository } = useRepository();
  useTitle(t("Facts"), repository?.name);
  const search = useSearch({ from: "/r/$slug/facts" });
  const navigate = useNavigate({ from: "/r/$slug/facts" });
  const q = search.q ?? "";
  const [typed, setTyped] = useTyped(q, (words) => void navigate({ search: (old) => ({ ...old, q: words || undefined }), replace: true }));
  const status = STATUSES.find((one) => one === search.status);
  const sort = search.sort === "source_count" ? "source_count" : "newest";
  const grouped = search.grouped === "1";
  const concept = useQuery({
    queryKey: ["concept", repoID, search.concept],
    enabled: search.concept !== undefined,
    queryFn: ({ signal }) => ok(api.GET(`${R}/concepts/{conceptID}`, { params: { path: { repoID, conceptID: search.concept ?? "" } }, signal })),
  });
  const pages = usePages<Schemas["FactSummary"]>(
    ["facts", repoID, q, status ?? "", sort, grouped, search.concept ?? ""],
    (cursor, signal) => ok(api.GET(`${R}/facts`, { params: { path: { repoID }, query: { q: q || undefined, status, sort, grouped: grouped || undefined, concept_id: search.concept, cursor, limit: 100 } }, signal })),
    { keep: true },
  );
  const filtered = q !== "" || status !== undefined || search.concept !== undefined;
  return (
    <div className="page">
      <header>
        <h1>{t("Facts")}</h1>
      </header>
      <div className="bar">
        <input className="input" type="search" aria-label={t("Search in facts")} placeholder={t("Words of the fact or of the title of its source")} value={typed} onChange={(event) => setTyped(event.target.value)} />
        <Select
          small
          hideLabel
          label={t("Status")}
          value={status ?? ""}
          onChange={(next) => void navigate({ search: (old) => ({ ...old, status: next || undefined }) })}
          options={[
            ["", t("All that count")],
            ["new", t("not yet compared")],
            ["stable", t("compared")],
            ["duplicate", t("duplicates")],
            ["rejected", t("rejected")],
          ]}
        />
        <Select
          small
          hideLabel
          label={t("Order")}
          value={sort}
          onChange={(next) => void navigate({ search: (old) => ({ ...old, sort: next === "newest" ? undefined : next }) })}
          options={[
            ["newest", t("Newest first")],
            ["source_count", t("Most sources first")],
          ]}
        />
        <Checkbox checked={grouped} onChange={(on) => void navigate({ search: (old) => ({ ...old, grouped: on ? "1" : undefined }) })}>
          {t("One of each group")}
        </Checkbox>
        {concept.data && (
          <Badge tone="accent">
            {concept.data.canonical_name}
            <Button small quiet aria-label={t("All concepts")} onPress={() => void navigate({ search: (old) => ({ ...old, concept: undefined }) })}>
              ×
            </Button>
          </Badge>
        )}
      </div>
      <LongList
        pages={pages}
        id={(fact) => fact.id}
        label={t("Facts")}
        height={72}
        empty={
          filtered ? (
            <Empty title={t("No fact is like this")} action={q ? <LinkButton to="/r/$slug/search" params={{ slug: repoID }} search={{ q }}>{t("Search by meaning")}</LinkButton> : undefined} />
          ) : (
            <Empty icon={<Lightbulb aria-hidden />} title={t("No facts yet")} action={<LinkButton primary to="/r/$slug/sources" params={{ slug: repoID }}>{t("To the sources")}</LinkButton>}>
              {t("Facts are found in sources, a moment after they are added.")}
            </Empty>
          )
        }
        row={(fact) => <FactRow fact={fact} />}
      />
    </div>
  );
}
