/** A text with what is like the question marked. Offsets are code points. */
export function highlightSpans(text: string, spans: readonly (readonly number[])[]): { text: string; marked: boolean }[] {
  const points = Array.from(text);
  const parts: { text: string; marked: boolean }[] = [];
  const put = (from: number, to: number, marked: boolean) => {
    if (to > from) parts.push({ text: points.slice(from, to).join(""), marked });
  };
  let at = 0;
  for (const [start = 0, end = 0] of spans) {
    if (start < at) continue;
    put(at, start, false);
    put(start, end, true);
    at = Math.max(at, end);
  }
  put(at, points.length, false);
  return parts;
}
