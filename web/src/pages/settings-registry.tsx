//! What a repository gives to a registry, and what it takes from it.

import { useState } from "react";
import { api, ok, R, type Schemas } from "../api/client";
import { useAct, useRepo } from "../app/queries";
import { say } from "../app/toasts";
import { Button } from "../parts/button";
import { Checkbox, Field, Form, Select } from "../parts/form";
import { Confirm } from "../parts/overlay";
import { Empty } from "../parts/states";
import { t, tn } from "../words";
import { JobLine, useJob } from "./job-line";
import { Section } from "./settings-parts";

type Settings = Schemas["RepositorySettings"];
type RegistrySettings = Schemas["RepositoryRegistry"];

const KEY = /^okp_[\w-]{43}$/;
const lines = (text: string) => text.split(/[\s,]+/).filter(Boolean);

export function RegistryPanel({ settings }: { settings: Settings }) {
  const { available } = settings.registry;
  if (available.length === 0) {
    return (
      <Empty title={t("No registry is set up")}>
        {t("A registry holds what others have already read and paid for, so that it is taken instead of read once more. An operator of this installation sets one up.")}
      </Empty>
    );
  }
  return (
    <div className="stack">
      <Giving settings={settings} />
      <Trust registry={settings.registry} />
      <All settings={settings} />
    </div>
  );
}

/** The route sets back what is left out, so everything is said. */
function useRegistry(registry: RegistrySettings) {
  const repoID = useRepo();
  return useAct(
    (change: Schemas["RegistryChange"]) => {
      const { id, push_level, allowed_models } = registry;
      return ok(api.PUT(`${R}/settings/registry`, { params: { path: { repoID } }, body: { id, push_level, allowed_models, ...change } }));
    },
    { stale: [["settings", repoID]], done: () => say(t("Saved")) },
  );
}

function Giving({ settings }: { settings: Settings }) {
  const repoID = useRepo();
  const { registry } = settings;
  const change = useRegistry(registry);
  const contribute = useAct((enabled: boolean) => ok(api.PUT(`${R}/settings/auto-contribute`, { params: { path: { repoID } }, body: { enabled } })), { stale: [["settings", repoID]], done: () => say(t("Saved")) });
  const used = registry.available.find((one) => one.id === registry.id) ?? registry.available[0];
  const [models, setModels] = useState((registry.allowed_models ?? []).join("\n"));
  const chosen = lines(models);
  return (
    <Section title={t("Registry")} hint={t("What others have read and paid for is taken from it, and what was read here can be given to it.")}>
      {registry.available.length > 1 ? (
        <Select label={t("In use")} value={registry.id ?? ""} onChange={(id) => change.mutate({ id: id || null })} options={[["", t("The first one of the installation: {name}", { name: registry.available[0]?.id ?? "" })], ...registry.available.map((one) => [one.id, one.id] as const)]} />
      ) : null}
      {used && (
        <p className="break">
          <strong>{used.id}</strong> <span className="soft">{used.url}</span>
        </p>
      )}
      <Select
        label={t("What is given")}
        value={registry.push_level}
        onChange={(push_level) => change.mutate({ push_level })}
        options={[
          ["facts", t("Facts")],
          ["concepts", t("Facts and concepts")],
        ]}
      />
      <Checkbox checked={settings.auto_contribute} onChange={(on) => contribute.mutate(on)}>
        <span>
          {t("Give every source as soon as it is read")} <span className="soft small">{t("Its facts become readable for all who use the registry. Files are never given.")}</span>
        </span>
      </Checkbox>
      <Form onSubmit={() => change.mutate({ allowed_models: chosen.length > 0 ? chosen : null })}>
        <Field
          label={t("Taken is only what one of these models has read, one on each line")}
          area
          rows={3}
          mono
          value={models}
          onChange={setModels}
          hint={used?.allowed_models.includes("*") ? t("Left empty: whatever model it was.") : t("Left empty: what the installation allows ({models}).", { models: used?.allowed_models.join(", ") ?? "" })}
        />
        <div>
          <Button type="submit" busy={change.isPending} isDisabled={chosen.join() === (registry.allowed_models ?? []).join()}>
            {t("Save")}
          </Button>
        </div>
      </Form>
      <p className="soft small break">{registry.signing_key_id ? <>{t("What is given from here is signed with this key:")} <code>{registry.signing_key_id}</code></> : t("What is given from here is not signed: this installation has no key.")}</p>
    </Section>
  );
}

function Trust({ registry }: { registry: RegistrySettings }) {
  const change = useRegistry(registry);
  const [trust, setTrust] = useState(registry.trust);
  const [keys, setKeys] = useState(registry.trusted_keys.join("\n"));
  const given = lines(keys);
  const wrong = given.find((one) => !KEY.test(one));
  return (
    <Section title={t("Whose packages are taken")}>
      <Select
        label={t("Whose packages are taken")}
        hideLabel
        value={trust}
        onChange={(next) => {
          setTrust(next);
          // A list is saved with its keys: without any nothing would be taken.
          if (next !== "listed" || registry.trusted_keys.length > 0) change.mutate({ trust: next }, { onError: () => setTrust(registry.trust) });
        }}
        options={[
          ["anyone", t("Everybody's")],
          ["signed", t("Only signed ones, whoever signed them")],
          ["listed", t("Only those signed with a key of this list")],
        ]}
      />
      {trust === "anyone" && <p className="soft small">{t("Also what nobody has signed.")}</p>}
      {trust === "listed" && (
        <Form onSubmit={() => !wrong && change.mutate({ trust, trusted_keys: given })}>
          <Field label={t("Trusted keys, one on each line")} area rows={4} mono value={keys} onChange={setKeys} error={wrong ? t("“{key}” is no key: one begins with okp_ and has 43 characters after it.", { key: wrong.slice(0, 60) }) : undefined} hint={given.length === 0 ? t("It holds as soon as there is a key.") : undefined} />
          <div>
            <Button type="submit" primary busy={change.isPending} isDisabled={wrong !== undefined || given.length === 0 || (registry.trust === "listed" && given.join() === registry.trusted_keys.join())}>
              {t("Save")}
            </Button>
          </div>
        </Form>
      )}
    </Section>
  );
}

type Pulled = { dry_run: boolean; asked: number; found: number; imported: number; refused: number };

/** Everything at once: what was read here is given, or what others have read is taken. */
function All({ settings }: { settings: Settings }) {
  const repoID = useRepo();
  const [giving, setGiving] = useState(false);
  const [given, setGiven] = useState<string | null>(null);
  const [looked, setLooked] = useState<string | null>(null);
  const [taken, setTaken] = useState<string | null>(null);
  const path = { repoID };
  const give = useAct(() => ok(api.POST(`${R}/settings/contribute-all`, { params: { path } })), {
    done: ({ job_id }) => {
      setGiving(false);
      setGiven(job_id);
    },
  });
  const pull = useAct((dry_run: boolean) => ok(api.POST(`${R}/settings/pull-all`, { params: { path, query: { dry_run } } })), {
    done: ({ job_id }, dry) => {
      if (dry) setTaken(null);
      (dry ? setLooked : setTaken)(job_id);
    },
  });
  const look = useJob(looked);
  const take = useJob(taken);
  const gave = useJob(given);
  const preview = look.data?.state === "completed" ? (look.data.output as unknown as Pulled) : null;
  const result = take.data?.state === "completed" ? (take.data.output as unknown as Pulled) : null;
  return (
    <Section title={t("All at once")}>
      <div className="row">
        <Button onPress={() => pull.mutate(true)} busy={pull.isPending}>
          {t("Look for sources that could not be read")}
        </Button>
        <Button onPress={() => setGiving(true)}>{t("Give all that was read here …")}</Button>
      </div>
      {looked && !taken && (
        <JobLine
          job={look.data}
          error={look.error}
          running={t("The registry is asked")}
          done={
            preview && (
              <div className="stack tight">
                <p>{found(preview)}</p>
                {preview.found > 0 && (
                  <div>
                    <Button primary onPress={() => pull.mutate(false)} busy={pull.isPending}>
                      {t("Take it in")}
                    </Button>
                  </div>
                )}
              </div>
            )
          }
        />
      )}
      {taken && <JobLine job={take.data} error={take.error} running={t("It is taken in")} done={result && <p className="note good">{tn(result.imported, "{n} source was taken in.", "{n} sources were taken in.")} {result.refused > 0 && tn(result.refused, "{n} was refused by what is chosen above.", "{n} were refused by what is chosen above.")}</p>} />}
      {given && <JobLine job={gave.data} error={gave.error} running={t("Sources are given to the registry")} done={<p className="note">{gaveOf(gave.data) === 0 ? t("Nothing here can be given: only sources that have an address, and that a model has read, are exchanged.") : `${tn(gaveOf(gave.data), "{n} source is given.", "{n} sources are given.")} ${t("Each of them is a job of its own, which tells how it goes.")}`}</p>} />}
      {giving && (
        <Confirm title={t("Give all that was read here?")} open onClose={() => setGiving(false)} onConfirm={() => give.mutate(undefined)} action={t("Give")} busy={give.isPending}>
          <p>{settings.registry.push_level === "concepts" ? t("The facts and concepts of all sources become readable for all who use the registry.") : t("The facts of all sources become readable for all who use the registry.")} {t("Files are never given. What was given can't be taken back from those who have it.")}</p>
        </Confirm>
      )}
    </Section>
  );
}

const gaveOf = (job: Schemas["Job"] | undefined) => (job?.output as { sources?: number } | null | undefined)?.sources ?? 0;

const found = (one: Pulled) =>
  one.asked === 0
    ? t("There is nothing to look up: no source with an address is left without facts.")
    : [
        tn(one.asked, "{n} source was looked up.", "{n} sources were looked up."),
        one.found > 0 ? tn(one.found, "{n} is there.", "{n} are there.") : one.refused === 0 ? t("The registry has none of them.") : "",
        one.refused > 0 ? tn(one.refused, "{n} was refused by what is chosen above.", "{n} were refused by what is chosen above.") : "",
      ]
        .filter(Boolean)
        .join(" ");
