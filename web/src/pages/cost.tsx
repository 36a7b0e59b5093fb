//! What a repository has spent on models, and what it may spend.

import { useNavigate, useSearch } from "@tanstack/react-router";
import { useState } from "react";
import { ApiError, api, ok, R, type Schemas } from "../api/client";
import { useAct, useCan, useRepo, useRepository, useSettings } from "../app/queries";
import { say } from "../app/toasts";
import { useTitle } from "../app/title";
import { Badge } from "../parts/badges";
import { Button } from "../parts/button";
import { Meter } from "../parts/chart";
import { Field, Form } from "../parts/form";
import { Dialog } from "../parts/overlay";
import { Failure, Skeleton } from "../parts/states";
import { dollars, t } from "../words";
import { Usage, type UsageSearch } from "./usage";

type Budget = Schemas["RepositoryBudget"];

export default function Cost() {
  const repoID = useRepo();
  const { data: repository } = useRepository();
  useTitle(t("Cost"), repository?.name);
  const can = useCan();
  const search = useSearch({ from: "/r/$slug/cost" });
  const navigate = useNavigate({ from: "/r/$slug/cost" });
  return (
    <div className="page stack wide">
      <header>
        <h1>{t("Cost")}</h1>
      </header>
      {can("repository:manage") && <BudgetCard />}
      <Usage
        search={search}
        change={(next: UsageSearch) => void navigate({ search: (old) => ({ ...old, ...next }), replace: true, resetScroll: false })}
        scope={repoID}
        read={(query, signal) => ok(api.GET(`${R}/ai/usage`, { params: { path: { repoID }, query }, signal }))}
      />
    </div>
  );
}

function BudgetCard() {
  const [changing, setChanging] = useState(false);
  const settings = useSettings();
  if (settings.isPending) return <Skeleton rows={1} height={120} />;
  if (settings.error) return <Failure error={settings.error} retry={() => void settings.refetch()} />;
  const { budget } = settings.data;
  const most = budget.effective_usd;
  const over = most !== null && most !== undefined && budget.spent_usd >= most;
  return (
    <section className="card stack tight" aria-label={t("Budget of this month")}>
      <div className="row">
        <h2 className="grow">{t("Budget of this month")}</h2>
        <Button onPress={() => setChanging(true)}>{t("Change the budget")}</Button>
      </div>
      <p>
        {most === null || most === undefined
          ? t("{spent} spent, with no limit", { spent: dollars(budget.spent_usd) })
          : t("{spent} of {most} spent", { spent: dollars(budget.spent_usd), most: dollars(most) })}{" "}
        {over && <Badge tone="wrong">{t("used up")}</Badge>}
      </p>
      {most !== null && most !== undefined && <Meter label={t("Budget of this month")} value={budget.spent_usd} most={most} said={t("{spent} of {most} spent", { spent: dollars(budget.spent_usd), most: dollars(most) })} />}
      <p className="soft small">
        {budget.monthly_usd === null || budget.monthly_usd === undefined ? t("Nothing was chosen here: the limit is that of the installation.") : t("Chosen for this repository.")} {t("When it is used up, jobs wait until the month is over or the budget is raised. Months are those of UTC.")}
      </p>
      {changing && <ChangeBudget budget={budget} onClose={() => setChanging(false)} />}
    </section>
  );
}

function ChangeBudget({ budget, onClose }: { budget: Budget; onClose: () => void }) {
  const repoID = useRepo();
  const [given, setGiven] = useState(budget.monthly_usd === null || budget.monthly_usd === undefined ? "" : String(budget.monthly_usd));
  const amount = given.trim() === "" ? null : Number(given.replace(",", "."));
  const bad = amount !== null && !(amount >= 0);
  const act = useAct((monthly_usd: number | null) => ok(api.PUT(`${R}/settings/budget`, { params: { path: { repoID } }, body: { monthly_usd } })), {
    stale: [["settings", repoID]],
    quiet: true,
    done: () => {
      onClose();
      say(t("Saved"));
    },
  });
  const error = act.error instanceof ApiError ? act.error : null;
  return (
    <Dialog title={t("Change the budget")} open onClose={onClose}>
      <Form onSubmit={() => !bad && act.mutate(amount)} error={act.error}>
        <Field
          label={t("At most in a month, in US dollars")}
          inputMode="decimal"
          autoFocus
          value={given}
          onChange={setGiven}
          error={bad ? t("This is no amount.") : error?.field("monthly_usd")}
          hint={budget.max_usd === null || budget.max_usd === undefined ? t("Left empty: what the installation gives.") : t("Left empty: what the installation gives. No more than {most} can be chosen.", { most: dollars(budget.max_usd) })}
        />
        <div className="row dialog-buttons">
          <Button onPress={onClose}>{t("Cancel")}</Button>
          <Button primary type="submit" busy={act.isPending} isDisabled={bad}>
            {t("Save")}
          </Button>
        </div>
      </Form>
    </Dialog>
  );
}
