//! Words and signs of answers.

import { CircleCheck, CircleHelp, CircleX } from "lucide-react";
import type { ReactNode } from "react";
import type { Answer, AnswerRow, AnswerSentence, ExtractiveReason } from "../api/expected";
import { Badge } from "../parts/badges";
import { t } from "../words";

const NEAR = { size: 14, "aria-hidden": true } as const;
type Tone = "good" | "wrong" | "warn";

/** How a sentence stands to the evidence that it cites: icon, word and colour. */
export function verdict(of: AnswerSentence["verdict"]): [Tone, ReactNode, string] {
  switch (of) {
    case "supported":
      return ["good", <CircleCheck key="i" {...NEAR} />, t("supported")];
    case "contradicted":
      return ["wrong", <CircleX key="i" {...NEAR} />, t("contradicted")];
    default:
      return ["warn", <CircleHelp key="i" {...NEAR} />, t("not verified")];
  }
}

export function AnswerStatus({ answer }: { answer: Pick<AnswerRow, "status"> }) {
  switch (answer.status) {
    case "running":
      return <Badge tone="accent">{t("being answered")}</Badge>;
    case "answered":
      return <Badge tone="good" icon={<CircleCheck {...NEAR} />}>{t("answered, every sentence supported")}</Badge>;
    case "partly":
      return <Badge tone="warn" icon={<CircleHelp {...NEAR} />}>{t("answered in part")}</Badge>;
    case "abstained":
      return <Badge>{t("no answer in the facts")}</Badge>;
    case "extractive":
      return <Badge>{t("facts only")}</Badge>;
    case "cancelled":
      return <Badge>{t("stopped")}</Badge>;
    default:
      return <Badge tone="wrong" icon={<CircleX {...NEAR} />}>{t("failed")}</Badge>;
  }
}

/** Why an answer is made of facts as they stand, and who can change that. */
export function extractiveWord(reason: ExtractiveReason | null): string {
  const words: Record<ExtractiveReason, string> = {
    asked: t("As you asked, these are the facts nearest to your question, in the words of the sources."),
    no_model: t("No model is set up: these are the facts nearest to your question, in the words of the sources."),
    not_permitted: t("A model is asked only for those who may write reports here: these are the facts nearest to your question. An administrator of the repository can allow it for everybody."),
    daily_limit: t("You have spent what one person may spend on questions in a day: these are the facts nearest to your question. An administrator of the repository can raise it."),
    over_budget: t("The budget of this repository is used up: these are the facts nearest to your question. An administrator of the repository can raise it."),
    max_cost: t("The model would have cost more than this question may: these are the facts nearest to it."),
    model_failed: t("The model did not answer: these are the facts nearest to your question, in the words of the sources."),
  };
  return words[reason ?? "asked"] ?? "";
}

export function changeWord(change: Answer["evidence_changed"][number]["change"]): string {
  const words: Record<typeof change, string> = {
    rejected: t("was rejected"),
    removed: t("was deleted"),
    merged: t("was merged into another one"),
    retracted: t("rests on a source that was retracted"),
    contradicted: t("is contradicted by a newer one"),
  };
  return words[change] ?? change;
}

/** The answer as text with footnotes, for another program. */
export function footnoted(answer: Answer): string {
  const cited = answer.facts.filter((fact) => answer.sentences.some((one) => one.keys.includes(fact.key)));
  const number = (key: string) => cited.findIndex((fact) => fact.key === key) + 1;
  const said = answer.sentences.map((one) => {
    const numbers = one.keys.map(number).filter((n) => n > 0);
    return `${one.text}${numbers.map((n) => `[${n}]`).join("")}`;
  });
  const notes = cited.map((fact, n) => {
    const where = [fact.source.title ?? t("without a title"), fact.source.year, fact.source.page ? t("p. {n}", { n: fact.source.page }) : null].filter(Boolean).join(", ");
    return `[${n + 1}] “${fact.quote ?? fact.text}” (${where}) ${new URL(fact.url.replace(/^\//, ""), document.baseURI).href}`;
  });
  return `${said.join(answer.mode === "extractive" ? "\n\n" : " ")}\n\n${notes.join("\n")}\n`;
}
