//! One fact: where it stands, what contradicts it, what is like it, and what people say of it.

import { useQuery } from "@tanstack/react-query";
import { Link, useParams } from "@tanstack/react-router";
import { ArrowRight, TriangleAlert } from "lucide-react";
import { useState } from "react";
import { api, ok, R, type Schemas } from "../api/client";
import { useAct, useCan, usePages, useRepo } from "../app/queries";
import { say } from "../app/toasts";
import { useTitle } from "../app/title";
import { Badge, FactMarks, When } from "../parts/badges";
import { Button } from "../parts/button";
import { FactRow } from "../parts/fact";
import { Field, Form } from "../parts/form";
import { LongList } from "../parts/list";
import { OriginNote } from "../parts/origin";
import { Dialog } from "../parts/overlay";
import { Failure, Skeleton } from "../parts/states";
import { percent, t, tn } from "../words";
import { DecideButtons, differenceWord } from "./contradiction-parts";
import "./fact.css";

type Fact = Schemas["Fact"];

export default function FactPage() {
  const repoID = useRepo();
  const { id } = useParams({ from: "/r/$slug/facts/$id" });
  const fact = useQuery({
    queryKey: ["fact", repoID, id],
    queryFn: ({ signal }) => ok(api.GET(`${R}/facts/{factID}`, { params: { path: { repoID, factID: id } }, signal })),
  });
  useTitle(fact.data?.text.slice(0, 60));
  if (fact.isPending) return <div className="page reading"><Skeleton rows={5} height={72} /></div>;
  if (fact.error) return <div className="page reading"><Failure whole error={fact.error} retry={() => void fact.refetch()} /></div>;
  return <Shown fact={fact.data} key={id} />;
}

function Shown({ fact }: { fact: Fact }) {
  const slug = useRepo();
  const can = useCan();
  const [rejecting, setRejecting] = useState(false);
  const path = { repoID: slug, factID: fact.id };
  const stale = [["fact", slug], ["facts", slug], ["source-facts", slug]];
  const set = useAct((status: "rejected" | "stable") => ok(api.PUT(`${R}/facts/{factID}`, { params: { path }, body: { status } })), {
    stale,
    done: (_, status) => say(status === "stable" ? t("Restored") : t("Rejected")),
  });
  return (
    <article className="page reading stack wide">
      <header className="stack tight">
        <h1 className="fact-text">{fact.text}</h1>
        <div className="item-more">
          <FactMarks fact={fact} />
          <span>{tn(fact.source_count, "{n} source", "{n} sources")}</span>
          <span title={fact.promptset_hash ?? undefined}>
            {fact.model.startsWith("builtin") ? t("in the words of the source") : t("worded by {model}", { model: fact.model })}
          </span>
          <When at={fact.created_at} />
          <span className="grow" />
          {can("fact:update") && (fact.status === "stable" || fact.status === "new") && (
            <Button small onPress={() => setRejecting(true)}>
              {t("Reject …")}
            </Button>
          )}
          {can("fact:update") && fact.status === "rejected" && (
            <Button small primary onPress={() => set.mutate("stable")} busy={set.isPending}>
              {t("Restore")}
            </Button>
          )}
        </div>
        {fact.duplicate_of && (
          <p className="note">
            {t("This says the same as an older fact, and was merged into it.")}{" "}
            <Link to="/r/$slug/facts/$id" params={{ slug, id: fact.duplicate_of }}>
              {t("That fact")}
            </Link>{" "}
            {can("fact:update") && (
              <Button small onPress={() => set.mutate("stable")} busy={set.isPending}>
                {t("Undo the merge")}
              </Button>
            )}
          </p>
        )}
      </header>
      <section className="stack tight">
        <h2>{t("Where it stands")}</h2>
        {fact.sources.length === 0 && <p className="soft">{t("No source makes this statement any more.")}</p>}
        <ul className="stack">
          {fact.sources.map((source) => (
            <li key={`${source.source_id} ${source.chunk_index} ${source.image_id}`} className="card stack tight">
              <div className="row">
                <Link to="/r/$slug/sources/$id" params={{ slug, id: source.source_id }} search={{ fact: fact.id, page: source.sentences[0]?.page ?? undefined }} className="grow break">
                  <strong>{source.title || source.url}</strong>
                </Link>
                {source.mark && <Badge tone="wrong" icon={<TriangleAlert size={14} aria-hidden />}>{source.mark.kind === "retracted" ? t("retracted") : t("superseded")}</Badge>}
              </div>
              {source.mark?.reason && <p className="soft small break">{source.mark.reason}</p>}
              {source.sentences.map((quote) => (
                <blockquote key={quote.sentence_index} className="quote serif">
                  {quote.text ?? t("The text of the source has changed.")}{" "}
                  {quote.page && <span className="soft small">{t("p. {n}", { n: quote.page })}</span>}
                </blockquote>
              ))}
              {source.origin && <OriginNote origin={source.origin} />}
              {source.sentences.length === 0 && source.image_id && <p className="soft">{t("It was read from a picture.")}</p>}
            </li>
          ))}
        </ul>
        {fact.source_count > 100 && <p className="soft small">{t("The first 100 sources are shown.")}</p>}
      </section>
      {fact.candidate_contradictions.length > 0 && (
        <section className="stack tight">
          <h2>{t("What may contradict it")}</h2>
          {fact.candidate_contradictions.map((other) => (
            <Against key={other.fact_id} fact={fact} other={other} />
          ))}
        </section>
      )}
      {fact.concepts.length > 0 && <Concepts fact={fact} />}
      {fact.duplicates.length > 0 && <Duplicates fact={fact} />}
      {fact.group && fact.group.size > 1 && <Group fact={fact} />}
      <Similar fact={fact} />
      {rejecting && <Reject fact={fact} onClose={() => setRejecting(false)} onUndo={() => set.mutateAsync("stable")} />}
    </article>
  );
}

/** Two sides, and the words by which one can say what they are. */
function Against({ fact, other }: { fact: Fact; other: Schemas["CandidateContradiction"] }) {
  const slug = useRepo();
  return (
    <div className="card stack tight">
      <div className="against">
        <p className="serif">{fact.text}</p>
        <p className="serif">
          <Link to="/r/$slug/facts/$id" params={{ slug, id: other.fact_id }} className="item-main">
            {other.text}
          </Link>
        </p>
      </div>
      <div className="item-more">
        <Badge tone="warn">{differenceWord(other.difference)}</Badge>
        <span>{t("near by {share}", { share: percent(other.cosine) })}</span>
        {other.retracted && <Badge tone="wrong">{t("the other one is retracted")}</Badge>}
        <span className="grow" />
        <DecideButtons id={`${fact.id}.${other.fact_id}`} state={other.state} />
      </div>
    </div>
  );
}

function Concepts({ fact }: { fact: Fact }) {
  const slug = useRepo();
  const can = useCan();
  const undo = useAct((id: string) => ok(api.POST(`${R}/curation/{curationID}/undo`, { params: { path: { repoID: slug, curationID: id } } })), { stale: [["fact", slug, fact.id]] });
  const remove = useAct((conceptID: string) => ok(api.DELETE(`${R}/facts/{factID}/concepts/{conceptID}`, { params: { path: { repoID: slug, factID: fact.id, conceptID } } })), {
    stale: [["fact", slug, fact.id], ["concept", slug]],
    done: (step) => say(t("The fact no longer belongs to this concept"), step?.curation_id ? () => undo.mutateAsync(step.curation_id as string) : undefined),
  });
  return (
    <section className="stack tight">
      <h2>{t("What it speaks of")}</h2>
      <ul className="row">
        {fact.concepts.map((one) => (
          <li key={one.concept_id} className="chip">
            <Link to="/r/$slug/concepts/$id" params={{ slug, id: one.concept_id }}>
              {one.canonical_name}
            </Link>
            <span className="soft small">{one.context}</span>
            {can("concept:update") && (
              <Button small quiet aria-label={t("It does not speak of {name}", { name: one.canonical_name })} onPress={() => remove.mutate(one.concept_id)}>
                ×
              </Button>
            )}
          </li>
        ))}
      </ul>
    </section>
  );
}

function Duplicates({ fact }: { fact: Fact }) {
  const slug = useRepo();
  const can = useCan();
  const shown = fact.duplicates.slice(0, 20);
  const facts = useQuery({
    queryKey: ["fact", slug, fact.id, "duplicates", ...shown],
    queryFn: ({ signal }) => Promise.all(shown.map((factID) => ok(api.GET(`${R}/facts/{factID}`, { params: { path: { repoID: slug, factID } }, signal })))),
  });
  const part = useAct((factID: string) => ok(api.PUT(`${R}/facts/{factID}`, { params: { path: { repoID: slug, factID } }, body: { status: "stable" } })), {
    stale: [["fact", slug], ["facts", slug]],
    done: () => say(t("The merge is undone for good")),
  });
  return (
    <section className="stack tight">
      <h2>{tn(fact.duplicates.length, "{n} fact was merged into it", "{n} facts were merged into it")}</h2>
      {facts.isPending ? (
        <Skeleton rows={shown.length} height={48} />
      ) : facts.error ? (
        <Failure error={facts.error} />
      ) : (
        <ul className="card flush longlist">
          {facts.data.map((one) => (
            <li key={one.id} className="row nowrap duplicate">
              <div className="grow">
                <FactRow fact={one} />
              </div>
              {can("fact:update") && (
                <Button small onPress={() => part.mutate(one.id)}>
                  {t("Undo the merge")}
                </Button>
              )}
            </li>
          ))}
        </ul>
      )}
      {fact.duplicates.length > shown.length && <p className="soft small">{t("The first {n} are shown.", { n: shown.length })}</p>}
    </section>
  );
}

function Group({ fact }: { fact: Fact }) {
  const slug = useRepo();
  const pages = usePages<Schemas["FactSummary"]>(["fact", slug, fact.id, "group"], (cursor, signal) => ok(api.GET(`${R}/facts/{factID}/group`, { params: { path: { repoID: slug, factID: fact.id }, query: { cursor } }, signal })));
  return (
    <section className="stack tight">
      <h2>{t("Said alike")}</h2>
      <LongList still pages={pages} id={(one) => one.id} label={t("Said alike")} empty={null} row={(one) => <FactRow fact={one} />} />
    </section>
  );
}

function Similar({ fact }: { fact: Fact }) {
  const slug = useRepo();
  const similar = useQuery({
    queryKey: ["fact", slug, fact.id, "similar"],
    queryFn: ({ signal }) => ok(api.GET(`${R}/facts/{factID}/similar`, { params: { path: { repoID: slug, factID: fact.id }, query: { limit: 8 } }, signal })),
  });
  if (!similar.data || similar.data.data.length === 0) return null;
  return (
    <section className="stack tight">
      <h2>{t("Nearest facts")}</h2>
      <ul className="card flush longlist">
        {similar.data.data.map((one) => (
          <li key={one.id}>
            <FactRow fact={one} more={<span title={similar.data.model}>{t("near by {share}", { share: percent(one.cosine) })}</span>} />
          </li>
        ))}
      </ul>
      <p className="small">
        <Link to="/r/$slug/search" params={{ slug }} search={{ q: fact.text.slice(0, 200) }}>
          {t("Search for more")} <ArrowRight size={13} aria-hidden />
        </Link>
      </p>
    </section>
  );
}

function Reject({ fact, onClose, onUndo }: { fact: Fact; onClose: () => void; onUndo: () => Promise<unknown> }) {
  const slug = useRepo();
  const [why, setWhy] = useState("");
  const act = useAct(() => ok(api.PUT(`${R}/facts/{factID}`, { params: { path: { repoID: slug, factID: fact.id } }, body: { status: "rejected", reason: why || undefined } })), {
    stale: [["fact", slug], ["facts", slug], ["source-facts", slug]],
    quiet: true,
    done: () => {
      onClose();
      say(t("Rejected"), onUndo);
    },
  });
  return (
    <Dialog title={t("Reject this fact?")} open onClose={onClose}>
      <Form onSubmit={() => act.mutate(undefined)} error={act.error}>
        <p className="serif">{fact.text}</p>
        <Field label={t("Reason")} area rows={3} autoFocus value={why} onChange={setWhy} hint={t("It stays in the history, with your name. A rejected fact counts nowhere, and can be restored.")} />
        <div className="row dialog-buttons">
          <Button onPress={onClose}>{t("Cancel")}</Button>
          <Button danger type="submit" busy={act.isPending}>
            {t("Reject")}
          </Button>
        </div>
      </Form>
    </Dialog>
  );
}
