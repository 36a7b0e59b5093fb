//! What people decide about a concept. Each step can be undone.

import { useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useDeferredValue, useState } from "react";
import { ApiError, api, ok, R, type Schemas } from "../api/client";
import { useAct, useRepo } from "../app/queries";
import { say } from "../app/toasts";
import { Button } from "../parts/button";
import { Field, Form } from "../parts/form";
import { Dialog } from "../parts/overlay";
import { t, tn } from "../words";

type Concept = Schemas["Concept"];
type Props = { concept: Concept; onClose: () => void };

/** The act that undoes a step, or nothing where nothing was changed. */
export function useUndo(_concept: string): (step: string | null | undefined) => (() => Promise<unknown>) | undefined {
  const repoID = useRepo();
  const act = useAct((curationID: string) => ok(api.POST(`${R}/curation/{curationID}/undo`, { params: { path: { repoID, curationID } } })), {
    stale: [["concept", repoID], ["concepts", repoID], ["curation", repoID], ["fact", repoID]],
    done: () => say(t("Undone")),
  });
  return (step) => (step ? () => act.mutateAsync(step) : undefined);
}

const stale = (repoID: string) => [["concept", repoID], ["concepts", repoID], ["curation", repoID]];

export function RenameConcept({ concept, onClose }: Props) {
  const repoID = useRepo();
  const undo = useUndo(concept.id);
  const [name, setName] = useState(concept.canonical_name);
  const [context, setContext] = useState(concept.context);
  const [why, setWhy] = useState("");
  const act = useAct(
    () => ok(api.PUT(`${R}/concepts/{conceptID}`, { params: { path: { repoID, conceptID: concept.id } }, body: { canonical_name: name === concept.canonical_name ? undefined : name, context: context === concept.context ? undefined : context, reason: why || undefined } })),
    {
      stale: stale(repoID),
      quiet: true,
      done: (step) => {
        onClose();
        say(t("Renamed"), undo(step.curation_id));
      },
    },
  );
  const error = act.error instanceof ApiError ? act.error : null;
  return (
    <Dialog title={t("Rename or move")} open onClose={onClose}>
      <Form onSubmit={() => act.mutate(undefined)} error={act.error}>
        <Field label={t("Name")} autoFocus value={name} onChange={setName} error={error?.field("canonical_name")} />
        <Field label={t("Context")} value={context} onChange={setContext} error={error?.field("context")} />
        <Field label={t("Reason")} value={why} onChange={setWhy} />
        <Buttons onClose={onClose} word={t("Save")} busy={act.isPending} />
      </Form>
    </Dialog>
  );
}

export function AddAlias({ concept, onClose }: Props) {
  const repoID = useRepo();
  const undo = useUndo(concept.id);
  const [alias, setAlias] = useState("");
  const act = useAct(() => ok(api.POST(`${R}/concepts/{conceptID}/aliases`, { params: { path: { repoID, conceptID: concept.id } }, body: { alias } })), {
    stale: stale(repoID),
    quiet: true,
    done: (step) => {
      onClose();
      say(t("The name is added"), undo(step.curation_id));
    },
  });
  const error = act.error instanceof ApiError ? act.error : null;
  return (
    <Dialog title={t("Add another name")} open onClose={onClose}>
      <Form onSubmit={() => act.mutate(undefined)} error={act.error}>
        <Field label={t("Name")} autoFocus value={alias} onChange={setAlias} error={error?.field("alias")} hint={t("Later texts that use it lead to this concept.")} />
        <Buttons onClose={onClose} word={t("Add")} busy={act.isPending} />
      </Form>
    </Dialog>
  );
}

export function MergeConcept({ concept, onClose }: Props) {
  const repoID = useRepo();
  const navigate = useNavigate();
  const undo = useUndo(concept.id);
  const [typed, setTyped] = useState("");
  const [into, setInto] = useState<Schemas["ConceptSummary"] | null>(null);
  const [why, setWhy] = useState("");
  const act = useAct((to: string) => ok(api.POST(`${R}/concepts/{conceptID}/merge`, { params: { path: { repoID, conceptID: concept.id } }, body: { into: to, reason: why || undefined } })), {
    stale: stale(repoID),
    quiet: true,
    done: (step) => {
      onClose();
      const back = undo(step.curation_id);
      say(t("Merged"), back && (() => back().then(() => navigate({ to: "/r/$slug/concepts/$id", params: { slug: repoID, id: concept.id } }))));
      void navigate({ to: "/r/$slug/concepts/$id", params: { slug: repoID, id: step.concept.id } });
    },
  });
  return (
    <Dialog title={t("Merge into another concept")} open onClose={onClose}>
      <Form onSubmit={() => into && act.mutate(into.id)} error={act.error}>
        <p>{t("All facts and names of “{name}” go to the other one.", { name: concept.canonical_name })}</p>
        {into ? (
          <p className="row note">
            <strong className="grow">{into.canonical_name}</strong> <span className="soft">{into.context}</span>
            <Button small onPress={() => setInto(null)}>
              {t("Another")}
            </Button>
          </p>
        ) : (
          <PickConcept label={t("Into")} typed={typed} setTyped={setTyped} without={concept.id} onPick={setInto} />
        )}
        <Field label={t("Reason")} value={why} onChange={setWhy} />
        <Buttons onClose={onClose} word={t("Merge")} busy={act.isPending} off={into === null} />
      </Form>
    </Dialog>
  );
}

/** A concept by the beginning of its name. */
export function PickConcept({ label, typed, setTyped, without, onPick, calm }: { calm?: boolean; label: string; typed: string; setTyped: (text: string) => void; without?: string; onPick: (concept: Schemas["ConceptSummary"]) => void }) {
  const repoID = useRepo();
  const q = useDeferredValue(typed.trim());
  const found = useQuery({
    queryKey: ["concepts", repoID, "pick", q],
    enabled: q !== "",
    queryFn: ({ signal }) => ok(api.GET(`${R}/concepts`, { params: { path: { repoID }, query: { q, show_small: true, limit: 10 } }, signal })),
  });
  return (
    <div className="stack tight">
      <Field label={label} autoFocus={!calm} value={typed} onChange={setTyped} type="search" />
      {q !== "" && (
        <ul className="picks" aria-label={t("What is found")}>
          {found.data?.data
            .filter((one) => one.id !== without)
            .map((one) => (
              <li key={one.id}>
                <button type="button" className="facet" onClick={() => onPick(one)}>
                  <span>
                    {one.canonical_name} <span className="soft small">{one.context}</span>
                  </span>
                  <span className="soft small">{tn(one.fact_count, "{n} fact", "{n} facts")}</span>
                </button>
              </li>
            ))}
          {found.data?.data.length === 0 && <li className="soft small">{t("No concept is called so")}</li>}
        </ul>
      )}
    </div>
  );
}

export function SplitConcept({ concept, facts, onClose }: Props & { facts: string[] }) {
  const repoID = useRepo();
  const navigate = useNavigate();
  const undo = useUndo(concept.id);
  const [name, setName] = useState("");
  const [context, setContext] = useState(concept.context);
  const act = useAct(() => ok(api.POST(`${R}/concepts/{conceptID}/split`, { params: { path: { repoID, conceptID: concept.id } }, body: { fact_ids: facts, name, context } })), {
    stale: stale(repoID),
    quiet: true,
    done: (step) => {
      onClose();
      const back = undo(step.curation_id);
      say(t("Split off"), back && (() => back().then(() => navigate({ to: "/r/$slug/concepts/$id", params: { slug: repoID, id: concept.id } }))));
      void navigate({ to: "/r/$slug/concepts/$id", params: { slug: repoID, id: step.concept.id } });
    },
  });
  const error = act.error instanceof ApiError ? act.error : null;
  return (
    <Dialog title={t("Split off a concept")} open onClose={onClose}>
      <Form onSubmit={() => act.mutate(undefined)} error={act.error}>
        <p>{tn(facts.length, "{n} fact goes to a new concept.", "{n} facts go to a new concept.")}</p>
        <Field label={t("Name")} autoFocus value={name} onChange={setName} error={error?.field("name")} />
        <Field label={t("Context")} value={context} onChange={setContext} error={error?.field("context")} />
        <Buttons onClose={onClose} word={t("Split off")} busy={act.isPending} />
      </Form>
    </Dialog>
  );
}

function Buttons({ onClose, word, busy, off }: { onClose: () => void; word: string; busy: boolean; off?: boolean }) {
  return (
    <div className="row dialog-buttons">
      <Button onPress={onClose}>{t("Cancel")}</Button>
      <Button primary type="submit" busy={busy} isDisabled={off}>
        {word}
      </Button>
    </div>
  );
}
