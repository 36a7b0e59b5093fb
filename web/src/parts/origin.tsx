//! Where something was worded that was not worded here.

import { ArrowLeftRight, TriangleAlert } from "lucide-react";
import type { Schemas } from "../api/client";
import { t } from "../words";
import { Badge, When } from "./badges";

export function OriginNote({ origin }: { origin: Schemas["ImportOrigin"] }) {
  const from = origin.registry ? t("from the registry {name}", { name: origin.registry }) : origin.kind === "bundle" ? t("from a bundle") : t("from a package");
  return (
    <div className="item-more">
      <Badge icon={<ArrowLeftRight size={14} aria-hidden />}>{from}</Badge>
      {origin.pushed_by && <span className="break">{t("given by {name}", { name: origin.pushed_by })}</span>}
      {origin.key_id ? (
        <span className="break">
          {t("signed with")} <code>{origin.key_id}</code>
        </span>
      ) : (
        <span>{t("not signed")}</span>
      )}
      <When at={origin.imported_at} />
      {origin.withdrawn && (
        <>
          <Badge tone="wrong" icon={<TriangleAlert size={14} aria-hidden />}>
            {t("withdrawn there")}
          </Badge>
          {origin.withdrawn.reason && <span className="break">{origin.withdrawn.reason}</span>}
        </>
      )}
    </div>
  );
}
