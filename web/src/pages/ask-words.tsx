//! Words and signs of answers.

import { CircleCheck, CircleHelp, CircleX } from "lucide-react";
import type { ReactNode } from "react";
import type { Schemas } from "../api/client";
import { Badge } from "../parts/badges";
import { t } from "../words";
import type { Answer } from "./ask-events";
import { sourceLine, wordsOf } from "./ask-where";

const NEAR = { size: 14, "aria-hidden": true } as const;
type Tone = "good" | "wrong" | "warn";

/** How a sentence stands to the evidence that it cites: icon, word and colour. */
export function verdict(of: Schemas["Verdict"]): [Tone, ReactNode, string] {
  switch (of) {
    case "supported":
      return ["good", <CircleCheck key="i" {...NEAR} />, t("supported")];
    case "contradicted":
      return ["wrong", <CircleX key="i" {...NEAR} />, t("contradicted")];
    default:
      return ["warn", <CircleHelp key="i" {...NEAR} />, t("not verified")];
  }
}

export function AnswerStatus({ answer }: { answer: { status: Schemas["AnswerStatus"] } }) {
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
export function extractiveWord(reason: Schemas["WhyExtractive"] | null): string {
  const words: Record<Schemas["WhyExtractive"], string> = {
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

export function changeWord(change: Schemas["EvidenceChange"]): string {
  const words: Record<typeof change, string> = {
    rejected: t("was rejected"),
    removed: t("was deleted"),
    retracted: t("rests on a source that was retracted"),
    contradicted: t("is contradicted by a newer one"),
  };
  return words[change] ?? change;
}

/** Why a sentence that was written is not shown. */
export function leftOutWord(code: Schemas["DropReason"]): string {
  const words: Record<typeof code, string> = {
    no_keys: t("without evidence"),
    number: t("another number or date"),
    negation: t("denied or turned around"),
    name: t("another name"),
    quantifier: t("surer than the facts"),
    join: t("facts tied together"),
    unsupported: t("not what the facts say"),
    contradicted: t("contradicted"),
    too_many: t("too long an answer"),
  };
  return words[code] ?? code;
}

/** What the facts do not say. A model says it in words of the question; the rest are sentences of the service. */
export function missingWord(text: string): string {
  const words: Record<string, string> = {
    "no fact here has to do with the question": t("No fact here has to do with the question."),
    "none of the facts that were found answers the question": t("None of the facts that were found answers the question."),
    "the facts do not say all that was asked": t("The facts do not say all that was asked."),
    "the model stopped before its answer was complete": t("The model stopped before its answer was complete."),
  };
  return words[text] ?? text;
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
    const address = fact.url ? ` ${new URL(fact.url.replace(/^\//, ""), document.baseURI).href}` : "";
    return `[${n + 1}] “${fact.quote ?? wordsOf(fact)}” (${sourceLine(fact)})${address}`;
  });
  return `${said.join(answer.mode === "extractive" ? "\n\n" : " ")}\n\n${notes.join("\n")}\n`;
}
