import type { Schemas } from "../api/client";
import { t } from "../words";

export const roleNames = (): Record<Schemas["RepositoryRole"], string> => ({
  viewer: t("Viewer"),
  curator: t("Curator"),
  editor: t("Editor"),
  repoadmin: t("Administrator"),
});
