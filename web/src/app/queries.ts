//! What several pages ask for.

import { keepPreviousData, QueryClient, useInfiniteQuery, useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useParams } from "@tanstack/react-router";
import { useMemo } from "react";
import { ApiError, api, ok, R, type Schemas } from "../api/client";
import { t } from "../words";
import { complain } from "./toasts";

export const queries = new QueryClient({
  defaultOptions: {
    queries: {
      staleTime: 15_000,
      refetchOnWindowFocus: false,
      retry: (failures, error) => failures < 2 && (!(error instanceof ApiError) || error.status === 0 || error.status >= 500),
    },
    mutations: { retry: false },
  },
});

/** What went wrong, in a sentence. */
export function reason(error: unknown): string {
  if (error instanceof ApiError) {
    if (error.code === "offline") return t("The service does not answer. Is the connection there?");
    if (error.code === "too_many_answers") return t("Several questions are being answered here already. Wait until one is done, or stop one.");
    if (error.code === "ask_limit") return t("You have spent what one person may spend on questions in a day.");
    return error.detail || error.title;
  }
  return error instanceof Error ? error.message : String(error);
}

/** The slug of the repository in the address. */
export function useRepo(): string {
  return useParams({ strict: false, select: (params) => (params as { slug?: string }).slug ?? "" });
}

export function useRepository() {
  const repoID = useRepo();
  return useQuery({
    queryKey: ["repository", repoID],
    enabled: repoID !== "",
    queryFn: ({ signal }) => ok(api.GET(R, { params: { path: { repoID } }, signal })),
  });
}

/** The settings of the repository, for those who may see them. */
export function useSettings(enabled = true) {
  const repoID = useRepo();
  return useQuery({
    queryKey: ["settings", repoID],
    enabled,
    queryFn: ({ signal }) => ok(api.GET(`${R}/settings`, { params: { path: { repoID } }, signal })),
  });
}

export function useRepositories() {
  return useQuery({
    queryKey: ["repositories"],
    queryFn: ({ signal }) => ok(api.GET("/api/v1/repositories", { params: { query: { limit: 200 } }, signal })),
  });
}

export type Right = `${Schemas["PermissionObject"]}:${Schemas["PermissionAction"]}`;

/** Whether the reader may do something in this repository. Nothing is offered before that is known. */
export function useCan(): (right: Right) => boolean {
  const repoID = useRepo();
  const { data } = useQuery({
    queryKey: ["permissions", repoID],
    enabled: repoID !== "",
    staleTime: 60_000,
    queryFn: ({ signal }) => ok(api.GET(`${R}/permissions`, { params: { path: { repoID } }, signal })),
  });
  const rights = useMemo(() => new Set((data?.permissions ?? []).map((one) => `${one.object}:${one.action}`)), [data]);
  return (right) => rights.has(right);
}

/** Whether the reader may do something in the whole installation. */
export function useCanHere(): (right: Right) => boolean {
  const { data } = useQuery({ queryKey: ["my-permissions"], staleTime: 60_000, queryFn: ({ signal }) => ok(api.GET("/api/v1/permissions", { signal })) });
  const rights = useMemo(() => new Set(data?.domains.find((one) => one.domain === "system")?.permissions.map((one) => `${one.object}:${one.action}`)), [data]);
  return (right) => rights.has(right);
}

type PageOf<T> = { data: T[]; next_cursor?: string | null };

/** A list that is read page by page. */
export function usePages<T, P extends PageOf<T> = PageOf<T>>(
  key: readonly unknown[],
  read: (cursor: string | undefined, signal: AbortSignal) => Promise<P & PageOf<T>>,
  options?: { enabled?: boolean; keep?: boolean; refetchInterval?: number | false },
) {
  const query = useInfiniteQuery({
    queryKey: key,
    initialPageParam: undefined as string | undefined,
    queryFn: ({ pageParam, signal }) => read(pageParam, signal),
    getNextPageParam: (page) => page.next_cursor ?? undefined,
    enabled: options?.enabled ?? true,
    refetchInterval: options?.refetchInterval ?? false,
    placeholderData: options?.keep ? keepPreviousData : undefined,
  });
  const rows = useMemo(() => query.data?.pages.flatMap((page) => page.data) ?? [], [query.data]);
  return { ...query, rows, first: query.data?.pages[0] as P | undefined };
}
export type Pages<T> = ReturnType<typeof usePages<T>>;

/** An act that changes something: says so when it fails, and asks again for what it changed. */
export function useAct<A, T>(act: (input: A) => Promise<T>, options?: { stale?: readonly unknown[][]; done?: (result: T, input: A) => void; quiet?: boolean }) {
  const client = useQueryClient();
  const refresh = () => Promise.all((options?.stale ?? []).map((queryKey) => client.invalidateQueries({ queryKey })));
  return useMutation({
    mutationFn: act,
    onSuccess: async (result, input) => {
      options?.done?.(result, input);
      await refresh();
    },
    onError: (error) => {
      if (!options?.quiet) complain(reason(error));
      // A part of it may be done, or the page is older than what it speaks of.
      void refresh();
    },
  });
}
