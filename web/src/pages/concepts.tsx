//! What facts speak of.

import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import { Boxes } from "lucide-react";
import { api, ok, R, type Schemas } from "../api/client";
import { useCan, usePages, useRepo, useRepository, useSettings } from "../app/queries";
import { useTitle } from "../app/title";
import { useTyped } from "../app/typed";
import { LinkButton } from "../parts/button";
import { Checkbox, Select } from "../parts/form";
import { LongList } from "../parts/list";
import { Empty } from "../parts/states";
import { t, tn } from "../words";

type Page = Schemas["ConceptPage"];

export default function Concepts() {
  const repoID = useRepo();
  const { data: repository } = useRepository();
  useTitle(t("Concepts"), repository?.name);
  const search = useSearch({ from: "/r/$slug/concepts" });
  const navigate = useNavigate({ from: "/r/$slug/concepts" });
  const can = useCan();
  const q = search.q ?? "";
  const [typed, setTyped] = useTyped(q, (words) => void navigate({ search: (old) => ({ ...old, q: words || undefined }), replace: true }));
  const sort = search.sort === "name" ? "name" : "fact_count";
  const small = search.small === "1";
  const pages = usePages<Schemas["ConceptSummary"], Page>(
    ["concepts", repoID, q, search.context ?? "", sort, small],
    (cursor, signal) => ok(api.GET(`${R}/concepts`, { params: { path: { repoID }, query: { q: q || undefined, context: search.context, sort, show_small: small || undefined, cursor, limit: 100 } }, signal })),
    { keep: true },
  );
  const settings = useSettings(can("repository:manage"));
  const contexts = settings.data?.contexts.filter((one) => one.concept_count > 0).map((one) => one.label) ?? [...new Set(pages.rows.map((one) => one.context))];
  if (search.context && !contexts.includes(search.context)) contexts.push(search.context);
  const floor = pages.first?.floor;
  return (
    <div className="page">
      <header>
        <h1>{t("Concepts")}</h1>
      </header>
      <div className="bar">
        <input className="input" type="search" aria-label={t("Search in concepts")} placeholder={t("A name, or how it begins")} value={typed} onChange={(event) => setTyped(event.target.value)} />
        <Select small hideLabel label={t("Context")} value={search.context ?? ""} onChange={(next) => void navigate({ search: (old) => ({ ...old, context: next || undefined }) })} options={[["", t("All contexts")], ...contexts.toSorted().map((one) => [one, one] as const)]} />
        <Select
          small
          hideLabel
          label={t("Order")}
          value={sort}
          onChange={(next) => void navigate({ search: (old) => ({ ...old, sort: next === "fact_count" ? undefined : next }) })}
          options={[
            ["fact_count", t("Most facts first")],
            ["name", t("By name")],
          ]}
        />
        <Checkbox checked={small} onChange={(on) => void navigate({ search: (old) => ({ ...old, small: on ? "1" : undefined }) })}>
          {t("Also small ones")}
        </Checkbox>
      </div>
      {floor?.applied && !small && <p className="soft small concepts-floor">{tn(floor.min_fact_count, "Concepts with fewer than {n} fact are not shown.", "Concepts with fewer than {n} facts are not shown.")}</p>}
      <LongList
        pages={pages}
        id={(one) => one.id}
        label={t("Concepts")}
        height={58}
        empty={
          q || search.context ? (
            <Empty title={t("No concept is called so")} />
          ) : (
            <Empty icon={<Boxes aria-hidden />} title={t("No concepts yet")} action={<LinkButton primary to="/r/$slug/sources" params={{ slug: repoID }}>{t("To the sources")}</LinkButton>}>
              {t("Concepts are found in facts, a moment after these.")}
            </Empty>
          )
        }
        row={(one) => (
          <article className="item">
            <Link to="/r/$slug/concepts/$id" params={{ slug: repoID, id: one.id }} className="item-main" data-main>
              <strong>{one.canonical_name}</strong>
            </Link>
            <div className="item-more">
              <span>{one.context}</span>
              <span>{tn(one.fact_count, "{n} fact", "{n} facts")}</span>
              {one.contexts.length > 1 && <span>{tn(one.contexts.length - 1, "the same name in {n} other context", "the same name in {n} other contexts")}</span>}
            </div>
          </article>
        )}
      />
    </div>
  );
}
