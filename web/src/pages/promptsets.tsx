//! The instructions that models get.

import { useState } from "react";
import { Plus } from "lucide-react";
import { ApiError, api, ok, type Schemas } from "../api/client";
import { useAct, useCanHere, usePages } from "../app/queries";
import { say } from "../app/toasts";
import { useTitle } from "../app/title";
import { Badge, When } from "../parts/badges";
import { Button } from "../parts/button";
import { Field, Form, Select } from "../parts/form";
import { LongList } from "../parts/list";
import { Dialog } from "../parts/overlay";
import { count, t } from "../words";
import { AdminShell } from "./admin-shell";

type Promptset = Schemas["Promptset"];
const PHASES = ["fact_extraction", "image_fact_extraction", "concept_extraction", "refinement", "summarization", "synthesis", "posture", "image_picker"] as const;
type Phase = (typeof PHASES)[number];

const phaseNames = (): Record<Phase, string> => ({
  fact_extraction: t("Finding facts"),
  image_fact_extraction: t("Finding facts in pictures"),
  concept_extraction: t("Finding concepts"),
  refinement: t("Comparing concepts"),
  summarization: t("Summarizing concepts"),
  synthesis: t("Writing definitions"),
  posture: t("Checking reports"),
  image_picker: t("Choosing pictures"),
});

const texts = (one: Promptset | undefined) => (one?.phases ?? {}) as Record<string, string>;

export default function Promptsets() {
  useTitle(t("Promptsets"), t("Installation"));
  const can = useCanHere();
  const [making, setMaking] = useState(false);
  const [shown, setShown] = useState<Promptset | null>(null);
  const pages = usePages<Promptset>(["promptsets"], (cursor, signal) => ok(api.GET("/api/v1/promptsets", { params: { query: { cursor, limit: 100 } }, signal })));
  const builtIn = pages.rows.find((one) => one.built_in);
  const changed = (one: Promptset) => PHASES.filter((phase) => !one.built_in && builtIn && texts(one)[phase] !== texts(builtIn)[phase]);
  const names = phaseNames();
  return (
    <AdminShell
      action={
        can("promptset:write") && builtIn ? (
          <Button primary onPress={() => setMaking(true)}>
            <Plus aria-hidden /> {t("New promptset")}
          </Button>
        ) : undefined
      }
    >
      <LongList
        pages={pages}
        id={(one) => one.hash}
        label={t("Promptsets")}
        height={66}
        empty={null}
        row={(one) => (
          <article className="item">
            <div className="row">
              <p className="grow break">
                <strong>{one.name}</strong> <code className="soft">{one.hash.slice(0, 12)}</code>
              </p>
              {one.built_in && <Badge>{t("built in")}</Badge>}
              <Button small onPress={() => setShown(one)} aria-label={t("Texts of {name}", { name: one.name })}>
                {t("Texts")}
              </Button>
            </div>
            <div className="item-more">
              {one.created_at && <When at={one.created_at} />}
              {changed(one).length > 0 && <span>{t("other texts for: {names}", { names: changed(one).map((phase) => names[phase]).join(", ") })}</span>}
            </div>
          </article>
        )}
      />
      <p className="soft small promptsets-note">{t("A promptset never changes: another text is another promptset. A repository chooses one in its settings.")}</p>
      {shown && <Texts one={shown} changed={changed(shown)} onClose={() => setShown(null)} />}
      {making && builtIn && <NewPromptset from={builtIn} onClose={() => setMaking(false)} />}
    </AdminShell>
  );
}

function Texts({ one, changed, onClose }: { one: Promptset; changed: Phase[]; onClose: () => void }) {
  const names = phaseNames();
  return (
    <Dialog title={one.name} open onClose={onClose} wide>
      <div className="stack">
        <p className="small break">
          <code>{one.hash}</code>
        </p>
        {PHASES.filter((phase) => texts(one)[phase] !== undefined).map((phase) => (
          <details key={phase} open={changed.includes(phase)}>
            <summary>
              {names[phase]} {changed.includes(phase) && <Badge tone="accent">{t("its own")}</Badge>}
            </summary>
            <pre className="prompt" tabIndex={0}>
              {texts(one)[phase]}
            </pre>
          </details>
        ))}
      </div>
    </Dialog>
  );
}

function NewPromptset({ from, onClose }: { from: Promptset; onClose: () => void }) {
  const names = phaseNames();
  const [name, setName] = useState("");
  const [phase, setPhase] = useState<Phase>("fact_extraction");
  const [given, setGiven] = useState<Record<string, string>>(texts(from));
  const changed = PHASES.filter((one) => given[one] !== texts(from)[one]);
  const act = useAct(() => ok(api.POST("/api/v1/promptsets", { body: { name, phases: Object.fromEntries(changed.map((one) => [one, given[one] ?? ""])) } })), {
    stale: [["promptsets"]],
    quiet: true,
    done: () => {
      onClose();
      say(t("Saved"));
    },
  });
  const error = act.error instanceof ApiError ? act.error : null;
  const wrong = error?.fields.find((one) => one.field.startsWith("phases"));
  return (
    <Dialog title={t("New promptset")} open onClose={onClose} wide>
      <Form onSubmit={() => act.mutate(undefined)} error={act.error}>
        <Field label={t("Name")} autoFocus value={name} onChange={setName} error={error?.field("name")} />
        <Select label={t("Text for")} value={phase} onChange={setPhase} options={PHASES.map((one) => [one, changed.includes(one) ? `${names[one]} *` : names[one]] as const)} />
        <Field label={names[phase]} area mono rows={16} value={given[phase] ?? ""} onChange={(text) => setGiven({ ...given, [phase]: text })} error={wrong?.message} hint={t("{n} of {most} characters", { n: count([...(given[phase] ?? "")].length), most: count(20_000) })} />
        {changed.length === 0 && <p className="soft small">{t("At least one text must differ from the built-in ones.")}</p>}
        <div className="row dialog-buttons">
          <Button onPress={onClose}>{t("Cancel")}</Button>
          <Button primary type="submit" busy={act.isPending} isDisabled={changed.length === 0}>
            {t("Save")}
          </Button>
        </div>
      </Form>
    </Dialog>
  );
}
