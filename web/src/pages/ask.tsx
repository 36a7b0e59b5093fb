//! Where one asks, and what was asked before.

import { useQuery } from "@tanstack/react-query";
import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import { MessageCircleQuestion, Share2 } from "lucide-react";
import { useState } from "react";
import { api, ok, R, type Schemas } from "../api/client";
import { useCan, usePages, useRepo, useRepository } from "../app/queries";
import { useTitle } from "../app/title";
import { Badge, When } from "../parts/badges";
import { Button, LinkButton } from "../parts/button";
import { Select } from "../parts/form";
import { LongList } from "../parts/list";
import { Empty } from "../parts/states";
import { dollars, t, tn } from "../words";
import { AskBox, type Filters } from "./ask-box";
import { AnswerStatus } from "./ask-words";
import "./fact.css";

type AnswerRow = Schemas["AnswerSummary"];

const SUGGESTED = 3;
const listed = (text: string | undefined) => text?.split(",").filter(Boolean) ?? [];

export default function Ask() {
  const repoID = useRepo();
  const { data: repository } = useRepository();
  useTitle(t("Ask"), repository?.name);
  const search = useSearch({ from: "/r/$slug/ask" });
  const navigate = useNavigate({ from: "/r/$slug/ask" });
  const can = useCan();
  const [question, setQuestion] = useState(search.q ?? "");
  const filters: Filters = { sources: listed(search.sources), concepts: listed(search.concepts), context: search.context, from: search.from, to: search.to };
  const setFilters = (next: Filters) =>
    void navigate({
      search: (old) => ({ ...old, sources: next.sources.join(",") || undefined, concepts: next.concepts.join(",") || undefined, context: next.context, from: next.from, to: next.to }),
      replace: true,
      resetScroll: false,
    });
  const whose = search.whose === "own" || search.whose === "shared" ? search.whose : "all";
  const pages = usePages<AnswerRow>(
    ["answers", repoID, whose],
    (cursor, signal) => ok(api.GET(`${R}/answers`, { params: { path: { repoID }, query: { cursor, limit: 50, shared: whose === "all" ? undefined : whose === "shared" } }, signal })),
    { keep: true },
  );
  const nothing = repository?.counts?.facts === 0;
  return (
    <div className="page ask">
      <header>
        <div className="stack tight">
          <h1>{t("Ask")}</h1>
          <p className="soft">{t("No sentence is shown before it was held against the facts that it cites.")}</p>
        </div>
      </header>
      {nothing ? (
        <Empty icon={<MessageCircleQuestion aria-hidden />} title={t("There is nothing to ask yet")} action={can("source:write") ? <LinkButton primary to="/r/$slug/sources" params={{ slug: repoID }} search={{ add: "1" }}>{t("Add sources")}</LinkButton> : undefined}>
          {t("Answers are made of facts, and facts come with sources.")}
        </Empty>
      ) : (
        <div className="stack">
          <AskBox question={question} onQuestion={setQuestion} filters={filters} onFilters={setFilters} />
          {question === "" && <Suggestions onChoose={setQuestion} />}
          {(pages.rows.length > 0 || whose !== "all") && (
            <section className="stack tight" aria-label={t("Asked before")}>
              <div className="row">
                <h2 className="grow">{t("Asked before")}</h2>
                <Select
                  small
                  hideLabel
                  label={t("Whose")}
                  value={whose}
                  onChange={(next) => void navigate({ search: (old) => ({ ...old, whose: next === "all" ? undefined : next }), replace: true, resetScroll: false })}
                  options={[
                    ["all", t("My own and shared ones")],
                    ["own", t("My own")],
                    ["shared", t("Shared ones")],
                  ]}
                />
              </div>
              <LongList pages={pages} id={(one) => one.id} label={t("Asked before")} height={62} empty={<Empty title={t("No answer is like this")} />} row={(one) => <Row answer={one} />} />
            </section>
          )}
        </div>
      )}
    </div>
  );
}

function Row({ answer }: { answer: AnswerRow }) {
  const slug = useRepo();
  return (
    <article className="item">
      <Link to="/r/$slug/answers/$id" params={{ slug, id: answer.id }} className="item-main" data-main>
        <strong>{answer.question}</strong>
      </Link>
      <div className="item-more">
        <AnswerStatus answer={answer} />
        {answer.evidence_changed && <Badge tone="warn">{t("evidence changed")}</Badge>}
        {answer.shared && (
          <Badge icon={<Share2 size={14} aria-hidden />}>{answer.is_own ? t("shared by you") : t("shared by somebody")}</Badge>
        )}
        {answer.sentence_count > 0 && <span>{tn(answer.sentence_count, "{n} sentence", "{n} sentences")}</span>}
        {answer.cost_usd > 0 && <span>{dollars(answer.cost_usd)}</span>}
        <When at={answer.created_at} />
      </div>
    </article>
  );
}

/** Questions about what most facts speak of. */
function Suggestions({ onChoose }: { onChoose: (question: string) => void }) {
  const repoID = useRepo();
  const { data } = useQuery({
    queryKey: ["concepts", repoID, "biggest"],
    staleTime: 300_000,
    queryFn: ({ signal }) => ok(api.GET(`${R}/concepts`, { params: { path: { repoID }, query: { sort: "fact_count", limit: SUGGESTED } }, signal })),
  });
  const words = [(name: string) => t("What is known of {name}?", { name }), (name: string) => t("On what do the sources disagree about {name}?", { name }), (name: string) => t("Which numbers are given for {name}?", { name })];
  const questions = (data?.data ?? []).flatMap((one, n) => words[n]?.(one.canonical_name) ?? []);
  if (questions.length === 0) return null;
  return (
    <div className="row" role="group" aria-label={t("Questions to begin with")}>
      {questions.map((question) => (
        <Button key={question} small className="ask-suggestion" onPress={() => onChoose(question)}>
          {question}
        </Button>
      ))}
    </div>
  );
}
