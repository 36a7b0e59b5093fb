//! Who may ask a model here, and for how much.

import { useState } from "react";
import { ApiError, api, ok, R, type Schemas } from "../api/client";
import { useAct, useRepo } from "../app/queries";
import { say } from "../app/toasts";
import { Button } from "../parts/button";
import { Checkbox, Field, Form } from "../parts/form";
import { t } from "../words";
import { Section } from "./settings-parts";

export function AskSettings({ settings }: { settings: Schemas["RepositorySettings"] }) {
  const repoID = useRepo();
  const before = settings.ask.per_person_per_day_usd;
  const [given, setGiven] = useState(before === null ? "" : String(before));
  const amount = given.trim() === "" ? null : Number(given.replace(",", "."));
  const bad = amount !== null && !(amount >= 0);
  const change = useAct((body: Schemas["AskSettingsChange"]) => ok(api.PUT(`${R}/settings/ask`, { params: { path: { repoID } }, body })), {
    stale: [["settings", repoID], ["ask-estimate", repoID]],
    quiet: true,
    done: () => say(t("Saved")),
  });
  const error = change.error instanceof ApiError ? change.error : null;
  return (
    <Section title={t("Ask")} hint={t("Everybody who may read facts can ask, and gets the facts nearest to the question at no cost. A model that writes the answer spends the budget of this repository.")}>
      <Checkbox checked={settings.ask.viewers} onChange={(viewers) => change.mutate({ viewers })}>
        <span>
          {t("Viewers may ask a model, too")} <span className="soft small">{t("Otherwise only those who may write reports.")}</span>
        </span>
      </Checkbox>
      <Form onSubmit={() => !bad && change.mutate({ per_person_per_day_usd: amount })} error={change.error}>
        <Field
          label={t("At most for one person in a day, in US dollars")}
          inputMode="decimal"
          value={given}
          onChange={setGiven}
          error={bad ? t("This is no amount.") : error?.field("per_person_per_day_usd")}
          hint={t("Left empty: what the installation has. 0: nobody asks a model.")}
        />
        <div>
          <Button type="submit" primary busy={change.isPending} isDisabled={bad || amount === before}>
            {t("Save")}
          </Button>
        </div>
      </Form>
    </Section>
  );
}
