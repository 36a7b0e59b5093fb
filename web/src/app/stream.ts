//! A stream of events, read as it comes.

import { createParser, type EventSourceMessage } from "eventsource-parser";

/** The service says something every 15 s, be it that it has nothing to say. */
const SILENT = 40_000;

/** Reads until the stream ends, and fails when it breaks off or falls silent. `opened` is told of the answer first. */
export async function listen(open: (signal: AbortSignal) => Promise<Response>, stop: AbortSignal, opened: (response: Response) => void, onEvent: (event: EventSourceMessage) => void) {
  const silence = new AbortController();
  let timer = setTimeout(() => silence.abort(), SILENT);
  const ends = AbortSignal.any([stop, silence.signal]);
  try {
    const response = await open(ends);
    opened(response);
    const parser = createParser({ onEvent });
    const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
    // What was asked for by somebody else does not hear of the signal.
    ends.addEventListener("abort", () => void reader?.cancel().catch(() => {}));
    for (;;) {
      const piece = await reader?.read();
      ends.throwIfAborted();
      if (!piece || piece.done) return;
      clearTimeout(timer);
      timer = setTimeout(() => silence.abort(), SILENT);
      parser.feed(piece.value);
    }
  } finally {
    clearTimeout(timer);
  }
}

export const pause = (ms: number, signal: AbortSignal) =>
  new Promise<void>((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener("abort", () => {
      clearTimeout(timer);
      resolve();
    });
  });
