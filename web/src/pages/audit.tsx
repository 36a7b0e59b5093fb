//! Who did what in a repository, and who was refused there.

import { useNavigate, useSearch } from "@tanstack/react-router";
import { api, ok, R } from "../api/client";
import { useRepo, useRepository } from "../app/queries";
import { useTitle } from "../app/title";
import { t } from "../words";
import { AuditList } from "./audit-list";

export default function Audit() {
  const repoID = useRepo();
  const { data: repository } = useRepository();
  useTitle(t("Audit"), repository?.name);
  const search = useSearch({ from: "/r/$slug/audit" });
  const navigate = useNavigate({ from: "/r/$slug/audit" });
  return (
    <div className="page">
      <header>
        <h1>{t("Audit")}</h1>
      </header>
      <AuditList
        scope={repoID}
        search={search}
        change={(next) => void navigate({ search: (old) => ({ ...old, ...next }), replace: true, resetScroll: false })}
        read={(query, signal) => ok(api.GET(`${R}/audit`, { params: { path: { repoID }, query }, signal }))}
      />
    </div>
  );
}
