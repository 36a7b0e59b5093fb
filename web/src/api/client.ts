//! The API, with the types of its OpenAPI document.

import createClient from "openapi-fetch";
import type { components, paths } from "./schema";
import { authorized, BASE } from "./session";

export type Schemas = components["schemas"];
export type ProblemBody = Schemas["Problem"];

/** The paths of one repository. */
export const R = "/api/v1/repositories/{repoID}";

export const api = createClient<paths>({ baseUrl: BASE.replace(/\/$/, ""), fetch: authorized });
/** For what needs no session. */
export const open = createClient<paths>({ baseUrl: BASE.replace(/\/$/, "") });

/** A refusal of the service, or that it can't be reached. */
export class ApiError extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    readonly title: string,
    readonly detail: string,
    readonly requestId: string | null,
    readonly fields: { field: string; message: string }[],
    readonly retryAfter: number | null,
  ) {
    super(detail || title);
  }

  /** What was wrong with this field of a form. */
  field(name: string): string | undefined {
    return this.fields.find((one) => one.field === name)?.message;
  }
}

export function problem(response: Response | undefined, body: unknown): ApiError {
  const said = (body ?? {}) as Partial<ProblemBody>;
  const after = Number(response?.headers.get("retry-after") ?? "");
  return new ApiError(
    response?.status ?? 0,
    said.code ?? (response ? "unknown" : "offline"),
    said.title ?? (response ? `HTTP ${response.status}` : "offline"),
    said.detail ?? "",
    said.request_id ?? response?.headers.get("x-request-id") ?? null,
    said.errors ?? [],
    Number.isFinite(after) && after > 0 ? after : null,
  );
}

type Answer<T> = { data?: T; error?: unknown; response: Response };

/** The body of an answer; a refusal is thrown. */
export async function ok<T>(asked: Promise<Answer<T>>): Promise<T> {
  let answer: Answer<T>;
  try {
    answer = await asked;
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    throw problem(undefined, undefined);
  }
  if (!answer.response.ok) throw problem(answer.response, answer.error);
  return answer.data as T;
}

/** What is no JSON: files and uploads. `path` begins after the address of the installation. */
export async function raw(path: string, init?: RequestInit): Promise<Response> {
  let response: Response;
  try {
    response = await authorized(new Request(BASE + path.replace(/^\//, ""), init));
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    throw problem(undefined, undefined);
  }
  if (!response.ok) throw problem(response, await response.json().catch(() => undefined));
  return response;
}
