//! Which role may do what.

import { useQuery } from "@tanstack/react-query";
import { Check } from "lucide-react";
import { api, ok, type Schemas } from "../api/client";
import { useTitle } from "../app/title";
import { Failure, Skeleton } from "../parts/states";
import { Table } from "../parts/table";
import { t } from "../words";
import { AdminShell } from "./admin-shell";
import { roleNames } from "../parts/roles";

const ROLES: Schemas["Role"][] = ["sysadmin", "user", "repoadmin", "editor", "curator", "viewer"];

export default function Roles() {
  useTitle(t("Roles"), t("Installation"));
  const known = useQuery({ queryKey: ["known-permissions"], staleTime: Number.POSITIVE_INFINITY, queryFn: ({ signal }) => ok(api.GET("/api/v1/admin/permissions", { signal })) });
  const names: Record<Schemas["Role"], string> = { ...roleNames(), sysadmin: t("Administrator of the installation"), user: t("Every account") };
  return (
    <AdminShell>
      {known.isPending ? (
        <Skeleton rows={10} height={32} />
      ) : known.error ? (
        <Failure error={known.error} retry={() => void known.refetch()} />
      ) : (
        <div className="card flush">
          <Table
            label={t("Roles")}
            head={[t("Permission"), ...ROLES.map((role) => names[role])]}
            rows={known.data.data.map((one) => ({
              key: `${one.object}:${one.action}`,
              cells: [
                <code key="p">
                  {one.object}:{one.action}
                </code>,
                ...ROLES.map((role) =>
                  one.roles.includes(role) ? (
                    <span key={role} className="is-good">
                      <Check size={16} aria-hidden />
                      <span className="unseen">{t("yes")}</span>
                    </span>
                  ) : (
                    <span key={role} className="unseen">
                      {t("no")}
                    </span>
                  ),
                ),
              ],
            }))}
          />
        </div>
      )}
    </AdminShell>
  );
}
