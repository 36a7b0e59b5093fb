//! All accounts of the installation.

import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { api, ok, type Schemas } from "../api/client";
import { useAct, useCanHere, usePages } from "../app/queries";
import { say } from "../app/toasts";
import { useTitle } from "../app/title";
import { Badge, When } from "../parts/badges";
import { LongList } from "../parts/list";
import { Confirm, Menu, MenuItem } from "../parts/overlay";
import { t } from "../words";
import { AdminShell } from "./admin-shell";

type User = Schemas["AdminUser"];

export default function Users() {
  useTitle(t("Accounts"), t("Installation"));
  const can = useCanHere();
  const [act, setAct] = useState<{ kind: "disable" | "admin"; user: User } | null>(null);
  const { data: me } = useQuery({ queryKey: ["me"], staleTime: 300_000, queryFn: ({ signal }) => ok(api.GET("/api/v1/users/me", { signal })) });
  const pages = usePages<User>(["users"], (cursor, signal) => ok(api.GET("/api/v1/admin/users", { params: { query: { cursor, limit: 100 } }, signal })));
  const close = () => setAct(null);
  const status = useAct(({ id, to }: { id: string; to: Schemas["AccountStatus"] }) => ok(api.PUT("/api/v1/admin/users/{userID}/status", { params: { path: { userID: id } }, body: { status: to } })), {
    stale: [["users"]],
    done: (_, asked) => {
      close();
      say(asked.to === "disabled" ? t("The account is disabled") : t("The account is active again"), asked.to === "disabled" ? () => status.mutateAsync({ id: asked.id, to: "active" }) : undefined);
    },
  });
  const role = useAct(({ id, on }: { id: string; on: boolean }) => {
    const body = { user_id: id, role: "sysadmin" as const, domain: "system" };
    return ok(on ? api.PUT("/api/v1/admin/users/roles", { body }) : api.DELETE("/api/v1/admin/users/roles", { body }));
  }, {
    stale: [["users"], ["profile"]],
    done: () => {
      close();
      say(t("Saved"));
    },
  });
  return (
    <AdminShell>
      <LongList
        pages={pages}
        id={(one) => one.id}
        label={t("Accounts")}
        height={66}
        empty={null}
        row={(one) => (
          <article className="item">
            <div className="row nowrap">
              <p className="grow break">
                <strong>{one.name}</strong> <span className="soft">{one.email}</span> {one.id === me?.id && <Badge>{t("you")}</Badge>} <Roles id={one.id} />
              </p>
              {one.status === "disabled" && <Badge tone="wrong">{t("disabled")}</Badge>}
              {(can("user:manage") || can("role:manage")) && (
                <Menu label={t("More for {title}", { title: one.name })}>
                  {can("role:manage") && <MenuItem onAction={() => setAct({ kind: "admin", user: one })}>{t("Make an administrator …")}</MenuItem>}
                  {can("role:manage") && <MenuItem onAction={() => role.mutate({ id: one.id, on: false })}>{t("Take the administrator's role away")}</MenuItem>}
                  {can("user:manage") && one.status === "disabled" && <MenuItem onAction={() => status.mutate({ id: one.id, to: "active" })}>{t("Make active again")}</MenuItem>}
                  {can("user:manage") && one.status === "active" && one.id !== me?.id && (
                    <MenuItem danger onAction={() => setAct({ kind: "disable", user: one })}>
                      {t("Disable …")}
                    </MenuItem>
                  )}
                </Menu>
              )}
            </div>
            <div className="item-more">
              <span>
                {t("since")} <When at={one.created_at} />
              </span>
            </div>
          </article>
        )}
      />
      {act?.kind === "disable" && (
        <Confirm title={t("Disable the account?")} open onClose={close} onConfirm={() => status.mutate({ id: act.user.id, to: "disabled" })} action={t("Disable")} busy={status.isPending}>
          <p className="break">
            <strong>{act.user.name}</strong> {act.user.email}
          </p>
          <p>{t("Its sessions and the access of its programs end with the next request. Its keys rest until it is active again.")}</p>
        </Confirm>
      )}
      {act?.kind === "admin" && (
        <Confirm title={t("Make an administrator?")} open onClose={close} onConfirm={() => role.mutate({ id: act.user.id, on: true })} action={t("Make an administrator")} busy={role.isPending}>
          <p className="break">
            <strong>{act.user.name}</strong> {act.user.email}
          </p>
          <p>{t("An administrator of the installation may do everything, in every repository.")}</p>
        </Confirm>
      )}
    </AdminShell>
  );
}

function Roles({ id }: { id: string }) {
  const { data } = useQuery({ queryKey: ["profile", id], staleTime: 60_000, queryFn: ({ signal }) => ok(api.GET("/api/v1/users/{userID}", { params: { path: { userID: id } }, signal })) });
  return data?.system_roles?.includes("sysadmin") ? <Badge tone="accent">{t("Administrator")}</Badge> : null;
}
