//! What can be said of two facts that may contradict each other.

import { api, ok, R, type Schemas } from "../api/client";
import { useAct, useCan, useRepo } from "../app/queries";
import { say } from "../app/toasts";
import { Badge } from "../parts/badges";
import { Button } from "../parts/button";
import { t } from "../words";

type State = Schemas["ContradictionState"];

export function differenceWord(difference: Schemas["Difference"]): string {
  const words: Record<Schemas["Difference"], string> = {
    negation: t("one denies it"),
    number: t("another number"),
    unit: t("another unit"),
    date: t("another date"),
    direction: t("another direction"),
    roles: t("other roles"),
    name: t("another name"),
    quantifier: t("another quantity"),
    certainty: t("another certainty"),
    wording: t("other words"),
    judged: t("parted by a person"),
  };
  return words[difference] ?? difference;
}

export const stateWord = (state: State): string =>
  ({ open: t("not decided"), real: t("real"), scope_differs: t("scope differs"), not_a_contradiction: t("no contradiction") })[state];

export function DecideButtons({ id, state, note }: { id: string; state: State; note?: string }) {
  const repoID = useRepo();
  const can = useCan();
  const stale = [["contradictions", repoID], ["fact", repoID]];
  const undo = useAct((step: string) => ok(api.POST(`${R}/curation/{curationID}/undo`, { params: { path: { repoID, curationID: step } } })), { stale });
  const act = useAct((next: State) => ok(api.PUT(`${R}/contradictions/{contradictionID}`, { params: { path: { repoID, contradictionID: id } }, body: { state: next, note: note || undefined } })), {
    stale,
    done: (marked, next) => say(`${t("Decided")}: ${stateWord(next)}`, marked.curation_id ? () => undo.mutateAsync(marked.curation_id as string) : undefined),
  });
  if (!can("fact:update")) return <Badge tone={state === "real" ? "wrong" : "plain"}>{stateWord(state)}</Badge>;
  const choices: [State, string, string][] = [
    ["real", t("Real"), t("They contradict each other")],
    ["scope_differs", t("Scope differs"), t("Both are true: of another time, place, group or method")],
    ["not_a_contradiction", t("None"), t("They do not contradict each other")],
  ];
  return (
    <span className="row tight" role="group" aria-label={t("What this pair is")}>
      {choices.map(([next, word, meaning]) => (
        <Button key={next} small primary={state === next} aria-pressed={state === next} aria-label={`${word}: ${meaning}`} onPress={() => act.mutate(state === next ? "open" : next)} isDisabled={act.isPending}>
          {word}
        </Button>
      ))}
    </span>
  );
}
