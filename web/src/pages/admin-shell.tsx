//! What surrounds the pages of the whole installation.

import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { useCanHere } from "../app/queries";
import { TopShell } from "../app/shell";
import { t } from "../words";
import "./sources.css";

const TABS = [
  ["/admin", "Health", "user:read"],
  ["/admin/users", "Accounts", "user:read"],
  ["/admin/jobs", "Jobs", "job:read"],
  ["/admin/cost", "Cost", "ai_usage:read"],
  ["/promptsets", "Promptsets", "promptset:read"],
  ["/admin/roles", "Roles", "role:read"],
  ["/admin/audit", "Audit", "audit:read"],
] as const;

const names = () => ({ Health: t("Health"), Accounts: t("Accounts"), Jobs: t("Jobs"), Cost: t("Cost"), Promptsets: t("Promptsets"), Roles: t("Roles"), Audit: t("Audit") });

export function AdminShell({ children, action }: { children: ReactNode; action?: ReactNode }) {
  const can = useCanHere();
  const words = names();
  return (
    <TopShell>
      <div className="page">
        <header>
          <h1>{t("Installation")}</h1>
          {action}
        </header>
        <nav className="tablist" aria-label={t("Installation")}>
          {TABS.filter(([, , right]) => can(right)).map(([to, name]) => (
            <Link key={to} to={to} className="tab" activeOptions={{ exact: true, includeSearch: false }} activeProps={{ "aria-current": "page" }}>
              {words[name]}
            </Link>
          ))}
        </nav>
        {children}
      </div>
    </TopShell>
  );
}
