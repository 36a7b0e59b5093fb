//! Addresses in a text that somebody pasted.

/** How many are taken from one paste. */
const MOST = 500;

/** Addresses, DOIs, arXiv and PubMed numbers of a text, each once. */
export function addressesOf(text: string): string[] {
  const found = text
    .split(/[\s,;<>"]+/)
    .map((word) => word.replace(/[).\]]+$/, "").trim())
    .filter((word) => /^https?:\/\/\S+\.\S+/i.test(word) || /^(doi:)?10\.\d{4,9}\/\S+/i.test(word) || /^(arxiv|pmid):\S+/i.test(word));
  return [...new Set(found)].slice(0, MOST);
}
