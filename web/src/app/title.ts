import { useEffect } from "react";

/** `document.title` says where one is. */
export function useTitle(...parts: (string | null | undefined)[]) {
  const title = [...parts.filter(Boolean), "okt"].join(" · ");
  useEffect(() => {
    document.title = title;
  }, [title]);
}
