//! Programs of others that the reader has let in.

import { Plug } from "lucide-react";
import { useState } from "react";
import { api, ok, type Schemas } from "../api/client";
import { useAct, usePages, useRepositories } from "../app/queries";
import { TopShell } from "../app/shell";
import { say } from "../app/toasts";
import { useTitle } from "../app/title";
import { When } from "../parts/badges";
import { Button } from "../parts/button";
import { LongList } from "../parts/list";
import { Confirm } from "../parts/overlay";
import { Empty } from "../parts/states";
import { day, t } from "../words";
import { AccountTabs } from "./account-tabs";

type Grant = Schemas["Grant"];

export default function Programs() {
  useTitle(t("Programs"), t("Account"));
  const [ending, setEnding] = useState<Grant | null>(null);
  const repositories = useRepositories();
  const pages = usePages<Grant>(["grants"], (cursor, signal) => ok(api.GET("/api/v1/users/me/grants", { params: { query: { cursor, limit: 100 } }, signal })));
  const end = useAct((id: string) => ok(api.DELETE("/api/v1/users/me/grants/{grantID}", { params: { path: { grantID: id } } })), {
    stale: [["grants"]],
    done: () => {
      setEnding(null);
      say(t("The program has no access any more"));
    },
  });
  const names = (ids: string[]) => ids.map((id) => repositories.data?.data.find((one) => one.id === id)?.name ?? id.slice(0, 8)).join(", ");
  return (
    <TopShell>
      <div className="page reading">
        <header>
          <h1>{t("Account")}</h1>
        </header>
        <AccountTabs />
        <LongList
          pages={pages}
          id={(one) => one.id}
          label={t("Programs")}
          height={90}
          empty={
            <Empty icon={<Plug aria-hidden />} title={t("No program has access")}>
              {t("When a program asks to act for you, okt asks you first, and the program is listed here.")}
            </Empty>
          }
          row={(one) => (
            <article className="item">
              <div className="row">
                <p className="grow break">
                  <strong>{one.client_name}</strong> <span className="soft small">{one.client_id}</span>
                </p>
                <Button small onPress={() => setEnding(one)} aria-label={t("Take access from {name}", { name: one.client_name })}>
                  {t("Take access away")}
                </Button>
              </div>
              <p className="small break">{one.allows.join(" · ")}</p>
              <div className="item-more">
                <span className="break">{one.repository_ids ? t("only in {name}", { name: names(one.repository_ids) }) : t("in all repositories")}</span>
                <span>{one.last_used_at ? <>{t("last used")} <When at={one.last_used_at} /></> : t("not used yet")}</span>
                <span>{t("until {day}", { day: day(one.expires_at) })}</span>
              </div>
            </article>
          )}
        />
      </div>
      {ending && (
        <Confirm title={t("Take access away?")} open onClose={() => setEnding(null)} onConfirm={() => end.mutate(ending.id)} action={t("Take access away")} busy={end.isPending}>
          <p className="break">
            <strong>{ending.client_name}</strong>
          </p>
          <p>{t("It is refused with its next request. It can ask you again.")}</p>
        </Confirm>
      )}
    </TopShell>
  );
}
