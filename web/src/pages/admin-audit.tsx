//! Who did what in the installation, and who was refused.

import { useNavigate, useSearch } from "@tanstack/react-router";
import { api, ok } from "../api/client";
import { useTitle } from "../app/title";
import { t } from "../words";
import { AdminShell } from "./admin-shell";
import { AuditList } from "./audit-list";

export default function AdminAudit() {
  useTitle(t("Audit"), t("Installation"));
  const search = useSearch({ from: "/admin/audit" });
  const navigate = useNavigate({ from: "/admin/audit" });
  return (
    <AdminShell>
      <AuditList scope="" search={search} change={(next) => void navigate({ search: (old) => ({ ...old, ...next }), replace: true, resetScroll: false })} read={(query, signal) => ok(api.GET("/api/v1/admin/audit", { params: { query }, signal }))} />
    </AdminShell>
  );
}
