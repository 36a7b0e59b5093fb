//! How a repository finds, fetches and reads its sources; its name; its end.

import { useQuery } from "@tanstack/react-query";
import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import { Plus } from "lucide-react";
import { useEffect, useState } from "react";
import { ApiError, api, ok, R, type Schemas } from "../api/client";
import { EXACTLY } from "../app/links";
import { reason, useAct, useCan, useRepo, useRepository, useSettings } from "../app/queries";
import { say } from "../app/toasts";
import { useTitle } from "../app/title";
import { Badge } from "../parts/badges";
import { Button } from "../parts/button";
import { Checkbox, Field, Form, Select } from "../parts/form";
import { Confirm, Dialog, Menu, MenuItem } from "../parts/overlay";
import { Failure, Skeleton } from "../parts/states";
import { t, tn } from "../words";
import { AskSettings } from "./settings-ask";
import { Section } from "./settings-parts";
import { RegistryPanel } from "./settings-registry";
import { Webhooks } from "./settings-webhooks";
import "./report.css";
import "./sources.css";
import "../parts/list.css";

type Context = Schemas["Context"];
type Settings = Schemas["RepositorySettings"];
const TABS = ["general", "reading", "contexts", "ask", "registry", "webhooks"] as const;

export default function SettingsPage() {
  const repoID = useRepo();
  const { data: repository } = useRepository();
  useTitle(t("Settings"), repository?.name);
  const can = useCan();
  const search = useSearch({ from: "/r/$slug/settings" });
  const tab = TABS.find((one) => one === search.tab) ?? "general";
  const settings = useSettings();
  // On a phone not all of them are in view.
  useEffect(() => {
    document.querySelector(".tablist [aria-current]")?.scrollIntoView({ inline: "nearest", block: "nearest" });
  }, [tab]);
  const names = { general: t("General"), reading: t("Reading"), contexts: t("Contexts"), ask: t("Ask"), registry: t("Registry"), webhooks: t("Webhooks") };
  return (
    <div className="page reading">
      <header>
        <h1>{t("Settings")}</h1>
      </header>
      <nav className="tablist" aria-label={t("Settings")}>
        {TABS.map((one) => (
          <Link key={one} to="/r/$slug/settings" params={{ slug: repoID }} search={{ tab: one === "general" ? undefined : one }} className="tab" aria-current={one === tab ? "page" : undefined} activeOptions={EXACTLY} resetScroll={false}>
            {names[one]}
          </Link>
        ))}
      </nav>
      {tab === "general" ? (
        <div className="stack wide">
          {repository ? <General repository={repository} mayChange={can("repository:update")} /> : <Skeleton rows={3} />}
          {repository && can("repository:delete") && <Delete repository={repository} />}
        </div>
      ) : tab === "webhooks" ? (
        <Webhooks />
      ) : settings.isPending ? (
        <Skeleton rows={6} />
      ) : settings.error ? (
        <Failure error={settings.error} retry={() => void settings.refetch()} />
      ) : tab === "reading" ? (
        <Reading settings={settings.data} />
      ) : tab === "ask" ? (
        <AskSettings settings={settings.data} />
      ) : tab === "registry" ? (
        <RegistryPanel settings={settings.data} />
      ) : (
        <Contexts settings={settings.data} />
      )}
    </div>
  );
}

function General({ repository, mayChange }: { repository: Schemas["Repository"]; mayChange: boolean }) {
  const repoID = useRepo();
  const [given, setGiven] = useState({ name: repository.name, description: repository.description });
  const act = useAct(() => ok(api.PUT(R, { params: { path: { repoID } }, body: given })), { stale: [["repository", repoID], ["repositories"]], quiet: true, done: () => say(t("Saved")) });
  const error = act.error instanceof ApiError ? act.error : null;
  return (
    <section className="card stack" aria-label={t("General")}>
      <Form onSubmit={() => act.mutate(undefined)} error={act.error}>
        <Field label={t("Name")} value={given.name} onChange={(name) => setGiven({ ...given, name })} error={error?.field("name")} isReadOnly={!mayChange} />
        <Field label={t("Description")} area rows={3} value={given.description} onChange={(description) => setGiven({ ...given, description })} error={error?.field("description")} isReadOnly={!mayChange} />
        {mayChange && (
          <div>
            <Button type="submit" primary busy={act.isPending} isDisabled={given.name === repository.name && given.description === repository.description}>
              {t("Save")}
            </Button>
          </div>
        )}
      </Form>
      <p className="soft small">{t("Its name in addresses stays: {slug}.", { slug: repository.slug })}</p>
    </section>
  );
}

function Delete({ repository }: { repository: Schemas["Repository"] }) {
  const repoID = useRepo();
  const navigate = useNavigate();
  const [asking, setAsking] = useState(false);
  const [typed, setTyped] = useState("");
  const preview = useQuery({
    queryKey: ["delete-repository", repoID],
    enabled: asking,
    staleTime: 0,
    queryFn: ({ signal }) => ok(api.DELETE(R, { params: { path: { repoID }, query: { dry_run: true } }, signal })),
  });
  const act = useAct(() => ok(api.DELETE(R, { params: { path: { repoID } } })), {
    stale: [["repositories"]],
    done: () => {
      say(t("The repository is deleted"));
      void navigate({ to: "/" });
    },
  });
  const counts = preview.data?.counts;
  return (
    <section className="card stack tight" aria-label={t("Delete the repository")}>
      <h2>{t("Delete the repository")}</h2>
      <p>{t("With all its sources, facts, concepts and reports, for all members. Export it first if you may want it again.")}</p>
      <div>
        <Button danger onPress={() => setAsking(true)}>
          {t("Delete the repository …")}
        </Button>
      </div>
      {asking && (
        <Confirm title={t("Delete the repository?")} open onClose={() => setAsking(false)} onConfirm={() => typed.trim() === repository.slug && act.mutate(undefined)} action={t("Delete for good")} busy={act.isPending}>
          {preview.isPending ? (
            <Skeleton rows={1} height={24} />
          ) : preview.error ? (
            <p className="note wrong">{reason(preview.error)}</p>
          ) : counts ? (
            <p className="break">
              <strong>{repository.name}</strong>: {tn(counts.sources, "{n} source", "{n} sources")}, {tn(counts.facts, "{n} fact", "{n} facts")}, {tn(counts.concepts, "{n} concept", "{n} concepts")}, {tn(counts.reports, "{n} report", "{n} reports")},{" "}
              {tn(counts.investigations, "{n} investigation", "{n} investigations")}.
            </p>
          ) : (
            <p className="note warn">{t("Its database does not answer, so it is not known how much would go.")}</p>
          )}
          <Field label={t("Type {slug} to go on", { slug: repository.slug })} autoFocus autoComplete="off" value={typed} onChange={setTyped} error={typed !== "" && !repository.slug.startsWith(typed.trim()) ? t("This is another name.") : undefined} />
          <p className="soft small">{t("This can't be undone.")}</p>
        </Confirm>
      )}
    </section>
  );
}

function Reading({ settings }: { settings: Settings }) {
  const repoID = useRepo();
  const path = { repoID };
  const stale = [["settings", repoID]];
  const done = () => say(t("Saved"));
  const stages = useAct((body: Schemas["StagesChange"]) => ok(api.PUT(`${R}/settings/stages`, { params: { path }, body })), { stale, done });
  const providers = useAct((body: Schemas["ProviderSwitch"]) => ok(api.PUT(`${R}/settings/providers`, { params: { path }, body })), { stale, done });
  const promptset = useAct((hash: string | null) => ok(api.PUT(`${R}/settings/promptsets`, { params: { path }, body: { promptset_hash: hash } })), { stale, done });
  const sets = useQuery({ queryKey: ["promptsets", "all"], queryFn: ({ signal }) => ok(api.GET("/api/v1/promptsets", { params: { query: { limit: 200 } }, signal })) });
  const stageNames: [keyof Schemas["RepositoryStages"], string, string][] = [
    ["image_extraction", t("Facts in pictures"), t("A model looks at the figures of a source.")],
    ["refinement", t("Concepts that are one"), t("A model compares new concepts with those that are there.")],
    ["summarization", t("Summaries"), t("A model sums up the facts of each concept as they come.")],
    ["synthesis", t("Definitions"), t("A model writes what the facts say of a concept, each sentence with its facts.")],
  ];
  const providerNames: [Schemas["Provider"], string][] = [
    ["web", t("Search of the web")],
    ["academic", t("Search of papers")],
    ["fetch", t("Plain requests")],
    ["open_access", t("Open copies of papers")],
    ["tls", t("Requests like those of a browser")],
    ["challenge_solver", t("A browser that passes checks")],
  ];
  const isOn = (provider: Schemas["Provider"]) => (settings.providers.search as Record<string, boolean>)[provider] ?? (settings.providers.resolution as Record<string, boolean>)[provider];
  const using = settings.promptset_hash ?? "";
  const rows = sets.data?.data ?? [];
  const builtIn = rows.find((one) => one.built_in);
  return (
    <div className="stack">
      <Section title={t("Stages that cost money")} hint={t("Without a model none of them does anything.")}>
        {stageNames.map(([id, name, hint]) => (
          <Checkbox key={id} checked={settings.stages[id]} onChange={(on) => stages.mutate({ [id]: on })}>
            <span>
              {name} <span className="soft small">{hint}</span>
            </span>
          </Checkbox>
        ))}
        <p className="soft small">
          <Link to="/r/$slug/cost" params={{ slug: repoID }}>
            {t("What they cost, and the budget")}
          </Link>
        </p>
      </Section>
      <Section title={t("Where sources are looked for and fetched")} hint={t("What the operator has not set up does nothing, on or off.")}>
        {providerNames
          .filter(([id]) => isOn(id) !== undefined)
          .map(([id, name]) => (
            <Checkbox key={id} checked={isOn(id) === true} onChange={(enabled) => providers.mutate({ provider: id, enabled })}>
              {name}
            </Checkbox>
          ))}
      </Section>
      <Section title={t("Promptset")} hint={t("The instructions that models get. Facts that are there already stay as they are.")}>
        {sets.isPending ? (
          <Skeleton rows={1} height={36} />
        ) : sets.error ? (
          <p className="note wrong">{reason(sets.error)}</p>
        ) : (
          <Select
            label={t("In use")}
            value={using === builtIn?.hash ? "" : using}
            onChange={(hash) => promptset.mutate(hash === "" ? null : hash)}
            options={[["", t("The built-in one")], ...rows.filter((one) => !one.built_in).map((one) => [one.hash, `${one.name} (${one.hash.slice(0, 8)})`] as const), ...(using !== "" && !rows.some((one) => one.hash === using) ? [[using, using.slice(0, 8)] as const] : [])]}
          />
        )}
        <p className="small">
          <Link to="/promptsets">{t("All promptsets and their texts")}</Link>
        </p>
      </Section>
    </div>
  );
}

function Contexts({ settings }: { settings: Settings }) {
  const repoID = useRepo();
  const stale = [["settings", repoID], ["concepts", repoID]];
  const [editing, setEditing] = useState<Context | "new" | null>(null);
  const [moving, setMoving] = useState<Context | null>(null);
  const [filter, setFilter] = useState("");
  const unmapped = useAct((value: Schemas["UnmappedContexts"]) => ok(api.PUT(`${R}/settings/contexts`, { params: { path: { repoID } }, body: { unmapped_contexts: value } })), { stale, done: () => say(t("Saved")) });
  const remove = useAct((label: string) => ok(api.DELETE(`${R}/settings/contexts/{context}`, { params: { path: { repoID, context: label } } })), { stale, done: () => say(t("Deleted")) });
  const shown = settings.contexts.filter((one) => one.label.toLowerCase().includes(filter.trim().toLowerCase()));
  return (
    <div className="stack">
      <Section title={t("A context that is not here")} hint={t("A model may file a concept under a context that the repository does not have. Then:")}>
        <Select
          label={t("Then")}
          hideLabel
          value={settings.unmapped_contexts}
          onChange={(value) => unmapped.mutate(value)}
          options={[
            ["catch_all", t("the concept is filed under “Concept”")],
            ["add", t("the context is added")],
            ["skip", t("the concept is left out")],
          ]}
        />
      </Section>
      <div className="bar">
        <input type="search" className="input" aria-label={t("Find a context")} placeholder={t("Find a context")} value={filter} onChange={(event) => setFilter(event.target.value)} />
        <span className="grow" />
        <Button onPress={() => setEditing("new")}>
          <Plus aria-hidden /> {t("New context")}
        </Button>
      </div>
      <ul className="card flush longlist" aria-label={t("Contexts")}>
        {shown.map((one) => (
          <li key={one.label}>
            <article className="item">
              <div className="row">
                <p className="grow break">
                  <strong>{one.label}</strong>
                </p>
                {one.concept_count > 0 ? (
                  <Link to="/r/$slug/concepts" params={{ slug: repoID }} search={{ context: one.label, small: "1" }} className="small">
                    {tn(one.concept_count, "{n} concept", "{n} concepts")}
                  </Link>
                ) : null}
                {one.custom && <Badge>{t("of this repository")}</Badge>}
                {one.merging_into ? (
                  <Badge tone="accent">{t("moves to {name}", { name: one.merging_into })}</Badge>
                ) : (
                  <Menu label={t("More for {title}", { title: one.label })}>
                    {one.custom && <MenuItem onAction={() => setEditing(one)}>{t("Change …")}</MenuItem>}
                    <MenuItem onAction={() => setMoving(one)}>{t("Merge into another …")}</MenuItem>
                    {one.concept_count === 0 && (
                      <MenuItem danger onAction={() => remove.mutate(one.label)}>
                        {t("Delete")}
                      </MenuItem>
                    )}
                  </Menu>
                )}
              </div>
              {one.description && <p className="soft small break">{one.description}</p>}
            </article>
          </li>
        ))}
        {shown.length === 0 && <li className="item soft">{t("No such context")}</li>}
      </ul>
      {editing && <EditContext context={editing === "new" ? null : editing} onClose={() => setEditing(null)} />}
      {moving && <MoveContext context={moving} all={settings.contexts} onClose={() => setMoving(null)} />}
    </div>
  );
}

function EditContext({ context, onClose }: { context: Context | null; onClose: () => void }) {
  const repoID = useRepo();
  const [given, setGiven] = useState({ label: context?.label ?? "", description: context?.description ?? "" });
  const act = useAct(
    () =>
      context
        ? ok(api.PUT(`${R}/settings/contexts/{context}`, { params: { path: { repoID, context: context.label } }, body: given }))
        : ok(api.POST(`${R}/settings/contexts`, { params: { path: { repoID } }, body: given })),
    { stale: [["settings", repoID]], quiet: true, done: onClose },
  );
  const error = act.error instanceof ApiError ? act.error : null;
  return (
    <Dialog title={context ? t("Change a context") : t("New context")} open onClose={onClose}>
      <Form onSubmit={() => act.mutate(undefined)} error={act.error}>
        <Field label={t("Name")} autoFocus value={given.label} onChange={(label) => setGiven({ ...given, label })} error={error?.field("label")} />
        <Field label={t("What belongs there")} area rows={3} value={given.description} onChange={(description) => setGiven({ ...given, description })} error={error?.field("description")} hint={t("In words for the model.")} />
        <div className="row dialog-buttons">
          <Button onPress={onClose}>{t("Cancel")}</Button>
          <Button primary type="submit" busy={act.isPending}>
            {t("Save")}
          </Button>
        </div>
      </Form>
    </Dialog>
  );
}

function MoveContext({ context, all, onClose }: { context: Context; all: Context[]; onClose: () => void }) {
  const repoID = useRepo();
  const others = all.filter((one) => one.label !== context.label && !one.merging_into);
  const [target, setTarget] = useState(others[0]?.label ?? "");
  const act = useAct(() => ok(api.POST(`${R}/settings/contexts/{context}/migrate`, { params: { path: { repoID, context: context.label } }, body: { target } })), {
    stale: [["settings", repoID]],
    quiet: true,
    done: () => {
      onClose();
      say(t("A job moves the concepts"));
    },
  });
  return (
    <Dialog title={t("Merge a context")} open onClose={onClose}>
      <Form onSubmit={() => act.mutate(undefined)} error={act.error}>
        <p className="break">{tn(context.concept_count, "{n} concept of “{name}” goes to the other one, and then the context is gone. Where both have a concept of the same name, they become one.", "{n} concepts of “{name}” go to the other one, and then the context is gone. Where both have a concept of the same name, they become one.", { name: context.label })}</p>
        <Select label={t("Into")} value={target} onChange={setTarget} options={others.map((one) => [one.label, one.label] as const)} />
        <p className="soft small">{t("This can't be undone.")}</p>
        <div className="row dialog-buttons">
          <Button onPress={onClose}>{t("Cancel")}</Button>
          <Button danger type="submit" busy={act.isPending} isDisabled={target === ""}>
            {t("Merge")}
          </Button>
        </div>
      </Form>
    </Dialog>
  );
}
