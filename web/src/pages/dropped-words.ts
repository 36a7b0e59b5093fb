import { t } from "../words";

/** Why something did not become a fact. */
export function droppedWord(reason: string): string {
  const words: Record<string, string> = {
    no_sentence: t("it cites no sentence"),
    not_in_text: t("it is not in the text"),
    number_not_in_text: t("its number is not in the text"),
    too_long: t("too long"),
    not_atomic: t("several statements in one"),
    empty: t("without words"),
    too_many: t("too many at once"),
    truncated: t("answers that were cut off"),
    not_a_sentence: t("not a sentence"),
    run_together: t("run together with something else"),
    question: t("questions"),
    quotation: t("quotations"),
    reference: t("references"),
    caption: t("captions"),
    boilerplate: t("notices and offers"),
    instruction: t("instructions"),
    first_or_second_person: t("“I”, “we” or “you”"),
    connective: t("it points at what was said before"),
    pronoun: t("a pronoun for what another sentence names"),
    unnamed_subject: t("it does not say who or which"),
    relative_time: t("a time that only the day of writing tells"),
    no_language_rules: t("no rules for its language"),
  };
  return words[reason] ?? reason.replaceAll("_", " ");
}
