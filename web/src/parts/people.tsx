import { useQuery } from "@tanstack/react-query";
import { api, ok } from "../api/client";
import { t } from "../words";

/** The name of an account. */
export function Person({ id }: { id: string }) {
  const { data, error } = useQuery({
    queryKey: ["person", id],
    staleTime: Number.POSITIVE_INFINITY,
    retry: false,
    queryFn: ({ signal }) => ok(api.GET("/api/v1/users/{userID}", { params: { path: { userID: id } }, signal })),
  });
  if (data) return <span className="break">{data.name}</span>;
  return <span className="soft">{error ? t("an account that is gone") : "…"}</span>;
}
