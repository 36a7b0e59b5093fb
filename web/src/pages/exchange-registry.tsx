//! The bundles of a registry, to take one of them.

import { useDeferredValue, useState } from "react";
import { api, ok, R, type Schemas } from "../api/client";
import { useCan, usePages, useRepo, useSettings } from "../app/queries";
import { Badge, When } from "../parts/badges";
import { Button } from "../parts/button";
import { LongList } from "../parts/list";
import { Dialog } from "../parts/overlay";
import { Empty } from "../parts/states";
import { bytes, t, tn } from "../words";

type RegistryGraph = Schemas["RegistryGraphListed"];

/** Whether the installation has a registry. */
export function useHasRegistry(): boolean {
  const can = useCan();
  const { data } = useSettings(can("repository:manage"));
  return (data?.registry.available.length ?? 0) > 0;
}

export function ChooseGraph({ onChoose, onClose }: { onChoose: (graph: RegistryGraph) => void; onClose: () => void }) {
  const repoID = useRepo();
  const [typed, setTyped] = useState("");
  const q = useDeferredValue(typed.trim());
  const pages = usePages<RegistryGraph>(["registry-graphs", repoID, q], (cursor, signal) => ok(api.GET(`${R}/registry/graphs`, { params: { path: { repoID }, query: { q: q || undefined, cursor } }, signal })), { keep: true });
  return (
    <Dialog title={t("Bundles of the registry")} open onClose={onClose} wide>
      <div className="stack tight">
        <input type="search" className="input" autoFocus aria-label={t("Find a bundle")} placeholder={t("Find a bundle")} value={typed} onChange={(event) => setTyped(event.target.value)} />
        <div className="registry-graphs">
          <LongList
            still
            plain
            pages={pages}
            id={(one) => one.graph_id}
            label={t("Bundles of the registry")}
            height={84}
            empty={<Empty title={q ? t("No bundle is called so") : t("The registry has no bundles yet")} />}
            row={(one) => (
              <article className="row nowrap item-row">
                <div className="item grow">
                  <p className="break">
                    <strong>{one.name}</strong>
                  </p>
                  {one.description && <p className="break soft">{one.description}</p>}
                  <div className="item-more">
                    <span>{tn(one.source_count, "{n} source", "{n} sources")}</span>
                    <span>{tn(one.fact_count, "{n} fact", "{n} facts")}</span>
                    <span>{tn(one.concept_count, "{n} concept", "{n} concepts")}</span>
                    <span>{bytes(one.bytes)}</span>
                    {one.owner && <span className="break">{t("given by {name}", { name: one.owner })}</span>}
                    <span>{one.signed ? t("signed") : t("not signed")}</span>
                    {one.created_at && <When at={one.created_at} />}
                    {one.tags.map((tag) => (
                      <Badge key={tag}>{tag}</Badge>
                    ))}
                  </div>
                </div>
                <Button small onPress={() => onChoose(one)} aria-label={t("Choose {name}", { name: one.name })}>
                  {t("Choose")}
                </Button>
              </article>
            )}
          />
        </div>
      </div>
    </Dialog>
  );
}
