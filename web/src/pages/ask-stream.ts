//! An answer as it comes.

import { type QueryClient, useQuery, useQueryClient } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { ApiError, api, ok, R, raw } from "../api/client";
import { useRepo } from "../app/queries";
import { listen, pause } from "../app/stream";
import { type Answer, type AskBody, after, blank, merged } from "./ask-events";

/** `lost`: the stream broke off and is opened again. `polled`: the service has no room for a stream. */
export type Line = "live" | "lost" | "polled";

const POLL = 3_000;
const PATIENCE = 10_000;

const answerKey = (repo: string, id: string) => ["answer", repo, id];
/** Streams that asking has opened, until the page of the answer reads them. */
const begun = new Map<string, Response>();

/** Asks, and gives the id of the answer that comes. With the same key it is the same answer. */
export async function begin(client: QueryClient, repo: string, body: AskBody, key: string): Promise<string> {
  const response = await raw(`api/v1/repositories/${repo}/ask`, { method: "POST", headers: { accept: "text/event-stream", "content-type": "application/json", "idempotency-key": key }, body: JSON.stringify(body) });
  const id = response.headers.get("x-answer-id");
  if (!id) throw new Error("no X-Answer-Id");
  begun.set(id, response);
  client.setQueryData(answerKey(repo, id), blank(id, body));
  void client.invalidateQueries({ queryKey: ["answers", repo] });
  return id;
}

/** The answer, and how news of it comes. */
export function useAnswer(id: string) {
  const repo = useRepo();
  const client = useQueryClient();
  const [line, setLine] = useState<Line>("live");
  const query = useQuery<Answer>({
    queryKey: answerKey(repo, id),
    structuralSharing: (old, next) => merged(old as Answer | undefined, next as Answer),
    queryFn: ({ signal }) => ok(api.GET(`${R}/answers/{answerID}`, { params: { path: { repoID: repo, answerID: id } }, signal })),
  });
  const running = query.data?.status === "running";
  useEffect(() => {
    if (!running) return;
    const stop = new AbortController();
    void follow(client, repo, id, setLine, stop.signal);
    return () => stop.abort();
  }, [running, client, repo, id]);
  return { ...query, line };
}

async function follow(client: QueryClient, repo: string, id: string, setLine: (line: Line) => void, signal: AbortSignal) {
  let last = "";
  let failures = 0;
  let first = begun.get(id);
  begun.delete(id);
  const refresh = async () => {
    await client.invalidateQueries({ queryKey: answerKey(repo, id) });
    void client.invalidateQueries({ queryKey: ["answers", repo] });
  };
  while (!signal.aborted) {
    let over = false;
    try {
      const given = first;
      first = undefined;
      await listen(
        async (ends) => given ?? raw(`api/v1/repositories/${repo}/answers/${id}/events`, { headers: { accept: "text/event-stream", ...(last ? { "last-event-id": last } : {}) }, signal: ends }),
        signal,
        (response) => {
          failures = 0;
          if (response.status === 204) {
            over = true;
            void refresh();
          }
          setLine("live");
        },
        (event) => {
          if (event.id) last = event.id;
          if (!event.event || !event.data) return;
          const data: unknown = JSON.parse(event.data);
          client.setQueryData<Answer>(answerKey(repo, id), (old) => old && after(old, event.event as string, data));
          if (event.event !== "done" && event.event !== "error") return;
          // The answer as it is kept has more than its events: what was said of it, what changed since.
          over = true;
          void refresh();
        },
      );
    } catch (error) {
      if (signal.aborted) break;
      failures += 1;
      const status = error instanceof ApiError ? error.status : 0;
      if (status === 403 || status === 404) return void refresh();
      // What is mended at once is nobody's trouble.
      if (status === 429 || status === 503) setLine("polled");
      else if (failures > 1) setLine("lost");
      if (status === 429 || status === 503) {
        await refresh();
        await pause(POLL, signal);
        continue;
      }
    }
    if (over) return;
    await pause(failures === 0 ? 500 : Math.min(PATIENCE, 500 * 2 ** (failures - 1)), signal);
  }
}
