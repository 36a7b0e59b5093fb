//! The account of the reader: profile, password, where it is signed in.

import { useQuery } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { ApiError, api, ok } from "../api/client";
import { useAct, usePages } from "../app/queries";
import { TopShell } from "../app/shell";
import { say } from "../app/toasts";
import { useTitle } from "../app/title";
import { Badge, When } from "../parts/badges";
import { Button } from "../parts/button";
import { Field, Form } from "../parts/form";
import { LongList } from "../parts/list";
import { Failure, Skeleton } from "../parts/states";
import { t } from "../words";
import { AccountTabs } from "./account-tabs";

export default function Account() {
  useTitle(t("Account"));
  const me = useQuery({ queryKey: ["me"], queryFn: ({ signal }) => ok(api.GET("/api/v1/users/me", { signal })) });
  const [name, setName] = useState("");
  const [words, setWords] = useState({ current: "", next: "" });
  useEffect(() => setName(me.data?.name ?? ""), [me.data]);
  const rename = useAct(() => ok(api.PUT("/api/v1/users/{userID}", { params: { path: { userID: me.data?.id ?? "" } }, body: { name } })), { stale: [["me"]], quiet: true, done: () => say(t("Saved")) });
  const change = useAct(() => ok(api.POST("/api/v1/users/me/password", { body: { current: words.current, new: words.next } })), {
    stale: [["sessions"]],
    quiet: true,
    done: () => {
      setWords({ current: "", next: "" });
      say(t("The password is changed, and all other sessions are ended"));
    },
  });
  const sessions = usePages(["sessions"], (cursor, signal) => ok(api.GET("/api/v1/users/me/sessions", { params: { query: { cursor } }, signal })));
  const end = useAct((id: string) => ok(api.DELETE("/api/v1/users/me/sessions/{sessionID}", { params: { path: { sessionID: id } } })), { stale: [["sessions"]] });
  const wrong = change.error instanceof ApiError ? change.error : null;
  return (
    <TopShell>
      <div className="page reading">
        <header>
          <h1>{t("Account")}</h1>
        </header>
        <AccountTabs />
        <div className="stack wide">
          {me.isPending ? (
            <Skeleton rows={2} />
          ) : me.error ? (
            <Failure error={me.error} retry={() => void me.refetch()} />
          ) : (
            <section className="card stack">
              <h2>{t("Profile")}</h2>
              <p className="soft">{me.data.email}</p>
              <Form onSubmit={() => rename.mutate(undefined)} error={rename.error}>
                <Field label={t("Name")} value={name} onChange={setName} autoComplete="name" />
                <div>
                  <Button type="submit" busy={rename.isPending}>
                    {t("Save")}
                  </Button>
                </div>
              </Form>
            </section>
          )}
          <section className="card stack">
            <h2>{t("Password")}</h2>
            <Form onSubmit={() => change.mutate(undefined)} error={change.error}>
              <Field label={t("Current password")} type="password" autoComplete="current-password" value={words.current} onChange={(current) => setWords({ ...words, current })} error={wrong?.field("current")} />
              <Field label={t("New password")} type="password" autoComplete="new-password" value={words.next} onChange={(next) => setWords({ ...words, next })} error={wrong?.field("new")} />
              <div>
                <Button type="submit" busy={change.isPending}>
                  {t("Change the password")}
                </Button>
              </div>
            </Form>
          </section>
          <section className="stack tight">
            <h2>{t("Signed in")}</h2>
            <LongList
              pages={sessions}
              id={(one) => one.id}
              label={t("Signed in")}
              empty={null}
              row={(one) => (
                <div className="item">
                  <div className="row">
                    <span className="grow break small">{one.user_agent ?? t("unknown program")}</span>
                    {one.current ? <Badge tone="good">{t("this one")}</Badge> : <Button small onPress={() => end.mutate(one.id)}>{t("End")}</Button>}
                  </div>
                  <div className="item-more">
                    {one.address && <span>{one.address}</span>}
                    <span>
                      {t("last used")} <When at={one.last_used_at} />
                    </span>
                  </div>
                </div>
              )}
            />
          </section>
        </div>
      </div>
    </TopShell>
  );
}
