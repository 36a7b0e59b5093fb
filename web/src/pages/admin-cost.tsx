//! What all repositories together have spent on models.

import { useNavigate, useSearch } from "@tanstack/react-router";
import { api, ok } from "../api/client";
import { useTitle } from "../app/title";
import { t } from "../words";
import { AdminShell } from "./admin-shell";
import { Usage } from "./usage";

export default function AdminCost() {
  useTitle(t("Cost"), t("Installation"));
  const search = useSearch({ from: "/admin/cost" });
  const navigate = useNavigate({ from: "/admin/cost" });
  return (
    <AdminShell>
      <Usage search={search} change={(next) => void navigate({ search: (old) => ({ ...old, ...next }), replace: true, resetScroll: false })} scope="" read={(query, signal) => ok(api.GET("/api/v1/ai/usage", { params: { query }, signal }))} />
    </AdminShell>
  );
}
