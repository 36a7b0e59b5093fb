import { t } from "../words";

/** Why a search did less than it might. */
export function degradedWord(reason: string): string {
  const words: Record<string, string> = {
    no_vectors: t("words only: there are no vectors yet"),
    vectors_away: t("words only: the vectors do not answer now"),
    hybrid_off: t("words only: so it is set"),
    no_words: t("nothing in it has a meaning to compare"),
    budget: t("words only: the budget is used up"),
    rerank_unavailable: t("not ranked a second time: the model does not answer"),
    rerank_budget: t("not ranked a second time: the budget is used up"),
  };
  return words[reason] ?? reason;
}
