//! All repositories of the reader, and making one.

import { useQuery } from "@tanstack/react-query";
import { Link, useNavigate } from "@tanstack/react-router";
import { Plus } from "lucide-react";
import { useEffect, useRef, useState } from "react";
import { ApiError, api, ok } from "../api/client";
import { useAct, useRepositories } from "../app/queries";
import { TopShell } from "../app/shell";
import { useTitle } from "../app/title";
import { Badge } from "../parts/badges";
import { Button } from "../parts/button";
import { Field, Form, Select } from "../parts/form";
import { Dialog } from "../parts/overlay";
import { roleNames } from "../parts/roles";
import { Empty, Failure, Skeleton } from "../parts/states";
import { t, tn } from "../words";
import "../parts/list.css";

export default function Repositories() {
  useTitle(t("Repositories"));
  const all = useRepositories();
  const navigate = useNavigate();
  const [making, setMaking] = useState(false);
  const rights = useQuery({ queryKey: ["my-permissions"], staleTime: 60_000, queryFn: ({ signal }) => ok(api.GET("/api/v1/permissions", { signal })) });
  const roles: Record<string, string> = roleNames();
  const mayMake = rights.data?.domains.some((one) => one.domain === "system" && one.permissions.some((right) => right.object === "repository" && right.action === "write"));
  const rows = all.data?.data ?? [];
  // After the first account there is one repository, and it is where one wants to be.
  const looked = useRef(false);
  useEffect(() => {
    if (!all.data || looked.current) return;
    looked.current = true;
    let first = false;
    try {
      first = sessionStorage.getItem("okt-welcome") === "1";
    } catch {
      // Then the list is shown.
    }
    const only = rows[0];
    if (first && only) void navigate({ to: "/r/$slug", params: { slug: only.slug }, replace: true });
  });
  return (
    <TopShell>
      <div className="page reading">
        <header>
          <h1>{t("Repositories")}</h1>
          {mayMake && (
            <Button primary onPress={() => setMaking(true)}>
              <Plus aria-hidden /> {t("New repository")}
            </Button>
          )}
        </header>
        {all.isPending ? (
          <Skeleton rows={3} height={72} />
        ) : all.error ? (
          <Failure error={all.error} retry={() => void all.refetch()} />
        ) : rows.length === 0 ? (
          <Empty title={t("No repository yet")} action={mayMake ? <Button primary onPress={() => setMaking(true)}>{t("New repository")}</Button> : undefined}>
            {mayMake ? t("A repository holds the sources and facts of one subject, and the people who work on it.") : t("Ask somebody who has a repository for an invitation.")}
          </Empty>
        ) : (
          <ul className="card flush longlist">
            {rows.map((one) => (
              <li key={one.id}>
                <article className="item">
                  <Link to="/r/$slug" params={{ slug: one.slug }} className="item-main">
                    <strong>{one.name}</strong>
                  </Link>
                  {one.description && <p className="soft">{one.description}</p>}
                  <div className="item-more">
                    {one.counts ? (
                      <>
                        <span>{tn(one.counts.sources, "{n} source", "{n} sources")}</span>
                        <span>{tn(one.counts.facts, "{n} fact", "{n} facts")}</span>
                        <span>{tn(one.counts.concepts, "{n} concept", "{n} concepts")}</span>
                      </>
                    ) : (
                      <Badge tone="warn">{t("its database does not answer")}</Badge>
                    )}
                    {one.roles.map((role) => (
                      <Badge key={role}>{roles[role] ?? role}</Badge>
                    ))}
                  </div>
                </article>
              </li>
            ))}
            {all.data.next_cursor && <li className="item soft small">{t("The first {n} are shown.", { n: rows.length })}</li>}
          </ul>
        )}
        {making && <NewRepository onClose={() => setMaking(false)} />}
      </div>
    </TopShell>
  );
}

function NewRepository({ onClose }: { onClose: () => void }) {
  const navigate = useNavigate();
  const presets = useQuery({ queryKey: ["presets"], staleTime: Number.POSITIVE_INFINITY, queryFn: ({ signal }) => ok(api.GET("/api/v1/repositories/presets", { signal })) });
  const [given, setGiven] = useState({ name: "", description: "", preset: "" });
  const preset = given.preset || presets.data?.data.find((one) => one.default)?.id || "";
  const act = useAct(
    () => ok(api.POST("/api/v1/repositories", { body: { name: given.name, description: given.description || undefined, preset: preset || undefined } })),
    { stale: [["repositories"]], quiet: true, done: (made) => void navigate({ to: "/r/$slug", params: { slug: made.slug } }) },
  );
  const error = act.error instanceof ApiError ? act.error : null;
  return (
    <Dialog title={t("New repository")} open onClose={onClose}>
      <Form onSubmit={() => act.mutate(undefined)} error={act.error}>
        <Field label={t("Name")} autoFocus value={given.name} onChange={(name) => setGiven({ ...given, name })} error={error?.field("name")} />
        <Field label={t("Description")} area rows={2} value={given.description} onChange={(description) => setGiven({ ...given, description })} error={error?.field("description")} />
        {presets.data && <Select label={t("Kind")} value={preset} onChange={(next) => setGiven({ ...given, preset: next })} options={presets.data.data.map((one) => [one.id, one.label] as const)} />}
        <p className="soft small">{presets.data?.data.find((one) => one.id === preset)?.description}</p>
        <div className="row dialog-buttons">
          <Button onPress={onClose}>{t("Cancel")}</Button>
          <Button primary type="submit" busy={act.isPending}>
            {t("Create")}
          </Button>
        </div>
      </Form>
    </Dialog>
  );
}
