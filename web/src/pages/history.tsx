//! What people decided, newest first, with the way back.

import { Link } from "@tanstack/react-router";
import { History as HistoryIcon } from "lucide-react";
import { api, ok, R, type Schemas } from "../api/client";
import { useAct, useCan, usePages, useRepo, useRepository } from "../app/queries";
import { say } from "../app/toasts";
import { useTitle } from "../app/title";
import { Badge, When } from "../parts/badges";
import { Button } from "../parts/button";
import { LongList } from "../parts/list";
import { Empty } from "../parts/states";
import { t, tn } from "../words";

type Step = Schemas["CurationStep"];

export default function HistoryPage() {
  const { data: repository } = useRepository();
  useTitle(t("History"), repository?.name);
  return (
    <div className="page">
      <header>
        <h1>{t("History")}</h1>
      </header>
      <Steps />
    </div>
  );
}

function actionWord(step: Step): string {
  const words: Record<Schemas["CurationAction"], string> = {
    merge: t("merged into"),
    split: t("split off"),
    rename: t("renamed to"),
    move: t("moved to"),
    add_alias: t("got the name"),
    remove_alias: t("lost the name"),
    reject_link: t("lost a fact"),
    reject_fact: t("Fact rejected"),
    restore_fact: t("Fact restored"),
    mark_contradiction: t("Contradiction judged"),
  };
  return words[step.action] ?? step.action;
}

/** All steps, or those of one concept. */
export function Steps({ concept }: { concept?: string }) {
  const repoID = useRepo();
  const can = useCan();
  const pages = usePages<Step>(["curation", repoID, concept ?? ""], (cursor, signal) => ok(api.GET(`${R}/curation`, { params: { path: { repoID }, query: { concept_id: concept, cursor, limit: 100 } }, signal })));
  const undo = useAct((id: string) => ok(api.POST(`${R}/curation/{curationID}/undo`, { params: { path: { repoID, curationID: id } } })), {
    stale: [["curation", repoID], ["concept", repoID], ["concepts", repoID], ["fact", repoID], ["facts", repoID], ["contradictions", repoID]],
    done: () => say(t("Undone")),
  });
  return (
    <LongList
      pages={pages}
      id={(step) => step.id}
      label={t("History")}
      height={66}
      empty={
        <Empty icon={<HistoryIcon aria-hidden />} title={t("Nobody has decided anything yet")}>
          {t("Merges, renamings, rejected facts and judged contradictions are listed here, and can be undone.")}
        </Empty>
      }
      row={(step) => (
        <article className="item">
          <div className="row">
            <p className="grow break">
              {step.concept && (
                <Link to="/r/$slug/concepts/$id" params={{ slug: repoID, id: step.concept.id }} data-main>
                  {step.concept.canonical_name}
                </Link>
              )}{" "}
              {actionWord(step)}{" "}
              {step.other && (
                <Link to="/r/$slug/concepts/$id" params={{ slug: repoID, id: step.other.id }}>
                  {step.other.canonical_name}
                </Link>
              )}
              {step.other && step.concept && step.other.context !== step.concept.context && <span className="soft"> ({step.other.context})</span>}
              {step.alias && <strong>{step.alias}</strong>}
              {!step.concept &&
                step.fact_ids.slice(0, 2).map((id, n) => (
                  <Link key={id} to="/r/$slug/facts/$id" params={{ slug: repoID, id }}>
                    {n > 0 && " "}
                    {t("the fact")}
                  </Link>
                ))}
              {step.fact_ids.length > 1 && step.concept && <span className="soft"> {tn(step.fact_ids.length, "{n} fact", "{n} facts")}</span>}
            </p>
            {step.undone_at ? (
              <Badge>
                {t("undone")} <When at={step.undone_at} />
              </Badge>
            ) : (
              can("concept:update") && (
                <Button small onPress={() => undo.mutate(step.id)} isDisabled={undo.isPending}>
                  {t("Undo")}
                </Button>
              )
            )}
          </div>
          <div className="item-more">
            <When at={step.created_at} />
            {step.job_id ? <span>{t("by a job")}</span> : null}
            {step.reason && <span className="break">“{step.reason}”</span>}
          </div>
        </article>
      )}
    />
  );
}
