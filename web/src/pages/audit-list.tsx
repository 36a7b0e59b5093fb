//! Who did what, and who was refused: of a repository, or of the whole installation.

import { ScrollText, X } from "lucide-react";
import type { ReactNode } from "react";
import type { Schemas } from "../api/client";
import { usePages } from "../app/queries";
import { Badge, When } from "../parts/badges";
import { Button } from "../parts/button";
import { LongList } from "../parts/list";
import { Person } from "../parts/people";
import { Empty } from "../parts/states";
import { t } from "../words";
import "../parts/prose.css";

type Entry = Schemas["AuditEntry"];
type Listed = Schemas["Page_AuditEntry"];
export type AuditSearch = { from?: string; to?: string; action?: string; actor?: string; object?: string };
/** As the routes take it. */
export type AuditQuery = AuditSearch & { cursor?: string; limit: number };

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-/;
/** A day of the reader as a moment. */
const moment = (day: string | undefined, plus = 0) => {
  if (!day || !/^\d{4}-\d\d-\d\d$/.test(day)) return undefined;
  const at = new Date(`${day}T00:00:00`);
  at.setDate(at.getDate() + plus);
  return at.toISOString();
};

const how = (): Record<string, string> => ({
  session: t("signed in"),
  api_key: t("with a key"),
  client: t("through a program"),
  anonymous: t("without an account"),
  service: t("okt itself"),
});

export function AuditList({ scope, search, change, read }: { scope: string; search: AuditSearch; change: (next: AuditSearch) => void; read: (query: AuditQuery, signal: AbortSignal) => Promise<Listed> }) {
  const words = how();
  const { action, actor, object } = search;
  const from = moment(search.from);
  const to = moment(search.to, 1);
  const pages = usePages<Entry>(["audit", scope, action, actor, object, from, to], (cursor, signal) => read({ action, actor, object, from, to, cursor, limit: 100 }, signal), { keep: true });
  const filters: [keyof AuditSearch, string, ReactNode][] = [];
  if (action) filters.push(["action", action, <code key="a">{action}</code>]);
  if (actor) filters.push(["actor", actor, <Person key="p" id={actor} />]);
  if (object) filters.push(["object", object, <code key="o">{object}</code>]);
  return (
    <>
      <div className="bar">
        <label className="row tight small">
          {t("From")} <input type="date" className="input" value={search.from ?? ""} max={search.to} onChange={(event) => change({ from: event.target.value || undefined })} />
        </label>
        <label className="row tight small">
          {t("To")} <input type="date" className="input" value={search.to ?? ""} min={search.from} onChange={(event) => change({ to: event.target.value || undefined })} />
        </label>
        <Button small quiet={action !== "request.denied"} onPress={() => change({ action: action === "request.denied" ? undefined : "request.denied" })} aria-pressed={action === "request.denied"}>
          {t("Only refusals")}
        </Button>
        {filters.map(([key, text, shown]) => (
          <Button key={key} small onPress={() => change({ [key]: undefined })} aria-label={t("Without the filter {name}", { name: text })}>
            {shown} <X aria-hidden />
          </Button>
        ))}
      </div>
      <LongList
        pages={pages}
        id={(one) => one.id}
        label={t("Audit")}
        height={66}
        empty={
          <Empty icon={<ScrollText aria-hidden />} title={t("Nothing is recorded here")}>
            {t("Changes, sign-ins, keys and refusals are recorded, and kept for as long as the operator has set.")}
          </Empty>
        }
        row={(one) => (
          <article className="item">
            <div className="row">
              <p className="grow break">
                <button type="button" className="cite" data-main onClick={() => change({ action: one.action })} title={t("Only this action")}>
                  <code>{one.action}</code>
                </button>{" "}
                {one.object && (
                  <button type="button" className="cite soft small" onClick={() => change({ object: one.object })} title={t("Only what was done to this")}>
                    {UUID.test(one.object) ? one.object.slice(0, 13) : one.object}
                  </button>
                )}
              </p>
              {one.action === "request.denied" && <Badge tone="warn">{t("refused")}</Badge>}
            </div>
            <div className="item-more">
              <When at={one.at} />
              {one.actor && (
                <button type="button" className="cite" onClick={() => change({ actor: one.actor ?? undefined })} title={t("Only what this account did")}>
                  <Person id={one.actor} />
                </button>
              )}
              <span>{words[one.actor_kind] ?? one.actor_kind}</span>
              {one.address && <span>{one.address}</span>}
              <span className="clip audit-agent" title={one.user_agent ?? undefined}>
                {t("Request")} <code>{one.request_id.slice(0, 13)}</code>
              </span>
            </div>
          </article>
        )}
      />
    </>
  );
}
