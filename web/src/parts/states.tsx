//! What a page shows when there is nothing to show, not yet, not to this reader, or not at all.

import { CircleAlert, Lock, SearchX, WifiOff } from "lucide-react";
import { type ReactNode, useEffect, useState } from "react";
import { ApiError } from "../api/client";
import { reason, useRepo } from "../app/queries";
import { t } from "../words";
import { Button } from "./button";
import "./states.css";

/** One sentence and one thing to do. `whole`: there is nothing else on the page. */
export function Empty({ title, children, action, icon, whole }: { whole?: boolean; title: string; children?: ReactNode; action?: ReactNode; icon?: ReactNode }) {
  return (
    <div className="state">
      {icon}
      {whole ? <h1>{title}</h1> : <h2>{title}</h2>}
      {children && <p className="soft">{children}</p>}
      {action}
    </div>
  );
}

/** Of the height of what will come, and only if that takes a while. */
export function Skeleton({ rows = 6, height = 56 }: { rows?: number; height?: number }) {
  const [shown, setShown] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => setShown(true), 150);
    return () => clearTimeout(timer);
  }, []);
  return (
    <div className="skeleton" role="status" aria-label={t("Loading")}>
      {Array.from({ length: rows }, (_, n) => (
        <div key={n} style={{ height }} className={shown ? "bone shown" : "bone"} />
      ))}
    </div>
  );
}

export function Failure({ error, retry, whole }: { error: unknown; retry?: () => void; whole?: boolean }) {
  const repo = useRepo();
  const api = error instanceof ApiError ? error : null;
  if (api?.status === 403) {
    return (
      <Empty whole={whole} icon={<Lock aria-hidden />} title={t("You can't see this")}>
        {repo ? t("Your role in this repository does not include it. An administrator of the repository can change your role.") : api.detail}
      </Empty>
    );
  }
  if (api?.status === 404) {
    return (
      <Empty whole={whole} icon={<SearchX aria-hidden />} title={t("There is nothing here")}>
        {t("It was deleted, or never existed, or you may not see it.")}
      </Empty>
    );
  }
  const offline = api?.code === "offline";
  const Heading = whole ? "h1" : "h2";
  return (
    <div className="state" role="alert">
      {offline ? <WifiOff aria-hidden /> : <CircleAlert aria-hidden />}
      <Heading>{offline ? t("The service does not answer") : (api?.title ?? t("Something went wrong"))}</Heading>
      <p className="soft break">{reason(error)}</p>
      {api?.requestId && (
        <p className="soft small">
          {t("Request")} <code>{api.requestId}</code>
        </p>
      )}
      {retry && <Button onPress={retry}>{t("Try again")}</Button>}
    </div>
  );
}
