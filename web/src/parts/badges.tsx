//! Small signs: icon, word and colour, never colour alone.

import { Ban, CircleCheck, CircleDashed, CircleHelp, CircleX, Clock, Link2, Loader, OctagonAlert, TriangleAlert } from "lucide-react";
import type { ReactNode } from "react";
import type { Schemas } from "../api/client";
import { ago, exactly, t, tn } from "../words";
import "./badges.css";

type Tone = "good" | "wrong" | "warn" | "accent" | "plain";

export function Badge({ tone = "plain", icon, children, title }: { tone?: Tone; icon?: ReactNode; children: ReactNode; title?: string }) {
  return (
    <span className={`badge ${tone}`} title={title}>
      {icon}
      {children}
    </span>
  );
}

const NEAR = { size: 14, "aria-hidden": true } as const;

export function PostureBadge({ posture, n }: { posture: Schemas["Posture"] | "irrelevant"; n?: number }) {
  const number = n === undefined ? "" : ` ${n}`;
  if (posture === "supports") return <Badge tone="good" icon={<CircleCheck {...NEAR} />}>{t("supports")}{number}</Badge>;
  if (posture === "contradicts") return <Badge tone="wrong" icon={<CircleX {...NEAR} />}>{t("contradicts")}{number}</Badge>;
  if (posture === "irrelevant") return <Badge>{t("Irrelevant")}{number}</Badge>;
  return <Badge icon={<Link2 {...NEAR} />}>{t("related")}{number}</Badge>;
}

export function standing(state: Schemas["SentenceStanding"]): [Tone, ReactNode, string] {
  switch (state) {
    case "supported":
      return ["good", <CircleCheck key="i" {...NEAR} />, t("supported")];
    case "contradicted":
      return ["wrong", <CircleX key="i" {...NEAR} />, t("contradicted")];
    case "unsupported":
      return ["warn", <CircleHelp key="i" {...NEAR} />, t("nothing known")];
    case "waiting":
      return ["accent", <Clock key="i" {...NEAR} />, t("waiting")];
    default:
      return ["plain", <CircleDashed key="i" {...NEAR} />, t("no claim")];
  }
}

export function StandingBadge({ state, n }: { state: Schemas["SentenceStanding"]; n?: number }) {
  const [tone, icon, word] = standing(state);
  return (
    <Badge tone={tone} icon={icon}>
      {n === undefined ? word : `${n} ${word}`}
    </Badge>
  );
}

/** Why something does not go on. */
export function waitingFor(reason: Schemas["Waiting"]): string {
  const words: Record<Schemas["Waiting"], string> = {
    relay: t("about to start"),
    schedule: t("waits for its time"),
    retry: t("failed, tries again"),
    slot: t("waits for its turn"),
    worker: t("no worker runs"),
    rate_limit: t("waits for a rate limit"),
    budget: t("waits for the budget"),
    dependency: t("waits for something else"),
  };
  return words[reason] ?? reason;
}

export function SourceStatus({ source, job }: { source: Schemas["SourceSummary"]; job?: Schemas["Job"] }) {
  if (source.status === "failed")
    return <Badge tone="wrong" icon={<OctagonAlert {...NEAR} />}>{t("failed")}</Badge>;
  const waits = source.waiting_for ?? job?.waiting_for;
  const words: Record<string, string> = {
    pending: t("queued"),
    fetching: t("fetching"),
    fetched: t("reading"),
    processing: t("finding facts"),
    processed: t("ready"),
  };
  const word = words[source.status] ?? source.status;
  if (source.status === "processed") return <Badge tone="good" icon={<CircleCheck {...NEAR} />}>{word}</Badge>;
  if (waits && waits !== "relay") return <Badge tone="warn" icon={<Clock {...NEAR} />}>{waitingFor(waits)}</Badge>;
  const total = job?.progress?.total;
  const share = job?.progress && total ? ` ${job.progress.done}/${total}` : "";
  return (
    <Badge tone="accent" icon={<Loader {...NEAR} />}>
      {word}
      {share}
    </Badge>
  );
}

export function FactMarks({ fact }: { fact: Schemas["FactSummary"] }) {
  return (
    <>
      {fact.status === "rejected" && <Badge tone="wrong" icon={<Ban {...NEAR} />}>{t("rejected")}</Badge>}
      {fact.status === "duplicate" && <Badge>{t("duplicate")}</Badge>}
      {fact.retracted ? (
        <Badge tone="wrong" icon={<TriangleAlert {...NEAR} />}>{t("retracted")}</Badge>
      ) : (
        fact.retracted_sources > 0 && (
          <Badge tone="warn" icon={<TriangleAlert {...NEAR} />}>
            {tn(fact.retracted_sources, "{n} source retracted", "{n} sources retracted")}
          </Badge>
        )
      )}
      {fact.superseded && <Badge tone="warn">{t("superseded")}</Badge>}
      {fact.group && fact.group.size > 1 && (
        <Badge title={t("Facts that say nearly the same")}>{tn(fact.group.sources, "said alike by {n} source", "said alike by {n} sources")}</Badge>
      )}
    </>
  );
}

export function When({ at }: { at: string }) {
  return (
    <time dateTime={at} title={exactly(at)}>
      {ago(at)}
    </time>
  );
}
