//! Keys for programs that act for the reader.

import { useQuery } from "@tanstack/react-query";
import { KeyRound, Plus } from "lucide-react";
import { useState } from "react";
import { ApiError, api, ok, type Schemas } from "../api/client";
import { useAct, usePages, useRepositories } from "../app/queries";
import { TopShell } from "../app/shell";
import { say } from "../app/toasts";
import { useTitle } from "../app/title";
import { Badge, When } from "../parts/badges";
import { Button } from "../parts/button";
import { Checkbox, Field, Form, Select } from "../parts/form";
import { LongList } from "../parts/list";
import { Confirm, Dialog } from "../parts/overlay";
import { Secret } from "../parts/secret";
import { Empty, Skeleton } from "../parts/states";
import { day, t, tn } from "../words";
import { AccountTabs } from "./account-tabs";

type Key = Schemas["ApiKey"];

export default function Keys() {
  useTitle(t("Keys"), t("Account"));
  const [making, setMaking] = useState(false);
  const [ending, setEnding] = useState<Key | null>(null);
  const repositories = useRepositories();
  const pages = usePages<Key>(["keys"], (cursor, signal) => ok(api.GET("/api/v1/users/me/api-keys", { params: { query: { cursor, limit: 100 } }, signal })));
  const revoke = useAct((id: string) => ok(api.DELETE("/api/v1/users/me/api-keys/{keyID}", { params: { path: { keyID: id } } })), {
    stale: [["keys"]],
    done: () => {
      setEnding(null);
      say(t("Revoked"));
    },
  });
  const repositoryName = (id: string) => repositories.data?.data.find((one) => one.id === id)?.name ?? id.slice(0, 8);
  const now = Date.now();
  return (
    <TopShell>
      <div className="page reading">
        <header>
          <h1>{t("Account")}</h1>
          <Button primary onPress={() => setMaking(true)}>
            <Plus aria-hidden /> {t("New key")}
          </Button>
        </header>
        <AccountTabs />
        <LongList
          pages={pages}
          id={(one) => one.id}
          label={t("Keys")}
          height={80}
          empty={
            <Empty icon={<KeyRound aria-hidden />} title={t("No keys yet")} action={<Button primary onPress={() => setMaking(true)}>{t("New key")}</Button>}>
              {t("A key lets a program that you run act for you, with no more than the permissions you give it.")}
            </Empty>
          }
          row={(one) => {
            const over = one.revoked_at || (one.expires_at && Date.parse(one.expires_at) < now);
            return (
              <article className="item">
                <div className="row">
                  <p className="grow break">
                    <strong>{one.name}</strong> <code className="soft">{one.prefix}…</code>
                  </p>
                  {one.revoked_at ? (
                    <Badge>{t("revoked")}</Badge>
                  ) : over ? (
                    <Badge>{t("expired")}</Badge>
                  ) : (
                    <Button small onPress={() => setEnding(one)} aria-label={t("Revoke {name}", { name: one.name })}>
                      {t("Revoke")}
                    </Button>
                  )}
                </div>
                <details className="small">
                  <summary>{tn(one.permissions.length, "{n} permission", "{n} permissions")}</summary>
                  <p className="soft break">{one.permissions.join(", ")}</p>
                </details>
                <div className="item-more">
                  <span>{one.repository_id ? t("only in {name}", { name: repositoryName(one.repository_id) }) : t("in all repositories")}</span>
                  <span>{one.last_used_at ? <>{t("last used")} <When at={one.last_used_at} /></> : t("not used yet")}</span>
                  <span>{one.expires_at ? t("until {day}", { day: day(one.expires_at) }) : t("does not expire")}</span>
                </div>
              </article>
            );
          }}
        />
      </div>
      {making && <NewKey onClose={() => setMaking(false)} />}
      {ending && (
        <Confirm title={t("Revoke the key?")} open onClose={() => setEnding(null)} onConfirm={() => revoke.mutate(ending.id)} action={t("Revoke")} busy={revoke.isPending}>
          <p className="break">
            <strong>{ending.name}</strong> <code>{ending.prefix}…</code>
          </p>
          <p>{t("Programs that use it are refused with their next request. This can't be undone.")}</p>
        </Confirm>
      )}
    </TopShell>
  );
}

const READING = ["repository:read", "source:read", "fact:read", "concept:read", "investigation:read", "report:read", "graph:read", "job:read"];

/** What a key can be given: what its owner may do, in the repository or in any. */
function useMine(repository: string): string[] | undefined {
  const { data } = useQuery({ queryKey: ["my-permissions"], staleTime: 60_000, queryFn: ({ signal }) => ok(api.GET("/api/v1/permissions", { signal })) });
  if (!data) return undefined;
  const domains = data.domains.filter((one) => repository === "" || one.domain === repository || (data.system_admin && one.domain === "system"));
  return [...new Set(domains.flatMap((one) => one.permissions.map((right) => `${right.object}:${right.action}`)))].sort();
}

function NewKey({ onClose }: { onClose: () => void }) {
  const repositories = useRepositories();
  const [given, setGiven] = useState({ name: "", repository: "", days: "90", kind: "read" });
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set(READING));
  const mine = useMine(given.repository);
  const allowed = mine ?? [];
  const permissions = given.kind === "read" ? allowed.filter((one) => READING.includes(one)) : given.kind === "all" ? allowed : allowed.filter((one) => chosen.has(one));
  const daysGiven = given.days === "" ? null : Number(given.days);
  const act = useAct(() => ok(api.POST("/api/v1/users/me/api-keys", { body: { name: given.name, permissions, repository_id: given.repository || undefined, expires_in_days: daysGiven ?? undefined } })), { stale: [["keys"]], quiet: true });
  const error = act.error instanceof ApiError ? act.error : null;
  return (
    <Dialog title={t("New key")} open onClose={onClose}>
      {act.data ? (
        <div className="stack">
          <p className="break">
            <strong>{act.data.name}</strong> {act.data.expires_at && <span className="soft">{t("until {day}", { day: day(act.data.expires_at) })}</span>}
          </p>
          <Secret label={t("Key")} value={act.data.token} />
          <p className="soft small">
            {t("Send it with each request:")} <code>Authorization: Bearer …</code>
          </p>
          <div className="row dialog-buttons">
            <Button primary onPress={onClose}>
              {t("Done")}
            </Button>
          </div>
        </div>
      ) : (
        <Form onSubmit={() => act.mutate(undefined)} error={act.error}>
          <Field label={t("Name")} autoFocus value={given.name} onChange={(name) => setGiven({ ...given, name })} error={error?.field("name")} hint={t("What you will know it by, such as the program that uses it.")} />
          <Select
            label={t("Where")}
            value={given.repository}
            onChange={(repository) => setGiven({ ...given, repository })}
            options={[["", t("In all repositories")], ...(repositories.data?.data ?? []).map((one) => [one.id, one.name] as const)]}
          />
          <Select
            label={t("What it may do")}
            value={given.kind}
            onChange={(kind) => setGiven({ ...given, kind })}
            options={[
              ["read", t("Read")],
              ["some", t("What I choose")],
              ["all", t("All that I may do")],
            ]}
          />
          {given.kind === "some" &&
            (mine === undefined ? (
              <Skeleton rows={3} height={30} />
            ) : (
              <fieldset className="key-permissions">
                <legend className="unseen">{t("What it may do")}</legend>
                {allowed.map((one) => (
                  <Checkbox
                    key={one}
                    checked={chosen.has(one)}
                    onChange={(on) => {
                      const next = new Set(chosen);
                      if (on) next.add(one);
                      else next.delete(one);
                      setChosen(next);
                    }}
                  >
                    <code>{one}</code>
                  </Checkbox>
                ))}
              </fieldset>
            ))}
          {given.kind === "all" && <p className="note warn small">{t("Whoever has this key can do what you can do. Choose less if less will do.")}</p>}
          {error?.field("permissions") && <p className="field-error">{error.field("permissions")}</p>}
          <Select
            label={t("For how long")}
            value={given.days}
            onChange={(days) => setGiven({ ...given, days })}
            options={[
              ["7", t("7 days")],
              ["30", t("30 days")],
              ["90", t("90 days")],
              ["365", t("A year")],
              ["", t("As long as the installation allows")],
            ]}
          />
          {error?.field("expires_in_days") && <p className="field-error">{error.field("expires_in_days")}</p>}
          <div className="row dialog-buttons">
            <Button onPress={onClose}>{t("Cancel")}</Button>
            <Button primary type="submit" busy={act.isPending} isDisabled={permissions.length === 0}>
              {t("Make a key")}
            </Button>
          </div>
        </Form>
      )}
    </Dialog>
  );
}
