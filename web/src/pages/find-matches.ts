//! Finding words in a text as people mean them: without case, accents, ligatures, and hyphens at the ends of lines.

/** A text without what does not matter, and where each of its characters stood. */
export type Folded = { text: string; from: number[]; to: number[] };

const SPACE = /\s/;
const MARKS = /\p{M}/gu;

export function folded(text: string): Folded {
  let out = "";
  const from: number[] = [];
  const to: number[] = [];
  const put = (what: string, start: number, end: number) => {
    for (const letter of what) {
      for (let n = 0; n < letter.length; n += 1) {
        from.push(start);
        to.push(end);
      }
      out += letter;
    }
  };
  for (let at = 0; at < text.length; ) {
    const letter = String.fromCodePoint(text.codePointAt(at) as number);
    const next = at + letter.length;
    if (SPACE.test(letter)) {
      let end = next;
      while (end < text.length && SPACE.test(text[end] as string)) end += 1;
      // A word that goes on in the next line.
      const broken = out.endsWith("-") && text.slice(at, end).includes("\n") && /\p{Ll}/u.test(text[end] ?? "");
      if (broken) {
        out = out.slice(0, -1);
        from.pop();
        to.pop();
      } else if (out !== "") put(" ", at, end);
      at = end;
      continue;
    }
    if (letter !== "\u00ad") put(letter.normalize("NFKD").replace(MARKS, "").toLowerCase().replace(/[‘’‚‛]/g, "'").replace(/[“”„‟]/g, '"').replace(/[‐‑‒–—]/g, "-"), at, next);
    at = next;
  }
  return { text: out, from, to };
}

/** What is asked for; empty if that is too little to be looked for. */
export const question = (text: string) => folded(text).text.trim();

/** Where the question stands in the text, one after the other. `asked` comes from `question`. */
export function matches(text: Folded, asked: string): [number, number][] {
  const found: [number, number][] = [];
  if (asked === "") return found;
  for (let at = text.text.indexOf(asked); at !== -1; at = text.text.indexOf(asked, at + asked.length)) {
    found.push([text.from[at] as number, text.to[at + asked.length - 1] as number]);
  }
  return found;
}
