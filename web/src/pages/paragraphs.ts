//! From the text of a source to paragraphs of sentences.

/** A sentence, or with null what stands between two. */
export type Piece = { text: string; index: number | null };

/** The text in paragraphs, these in sentences and what is between them. Offsets are code points. */
export function paragraphs(text: string, offsets: readonly (readonly number[])[]): Piece[][] {
  const points = Array.from(text);
  const whole: Piece[][] = [[]];
  const put = (part: string, index: number | null) => {
    const lines = part.split(/\n+/);
    lines.forEach((line, n) => {
      if (n > 0) whole.push([]);
      if (line !== "") whole.at(-1)?.push({ text: line, index });
    });
  };
  let at = 0;
  offsets.forEach(([start = 0, end = 0], index) => {
    if (start > at) put(points.slice(at, start).join(""), null);
    put(points.slice(Math.max(at, start), end).join("").replace(/\s*\n\s*/g, " "), index);
    at = Math.max(at, end);
  });
  if (at < points.length) put(points.slice(at).join(""), null);
  return whole.filter((paragraph) => paragraph.some((piece) => piece.text.trim() !== ""));
}
