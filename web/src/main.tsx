import { QueryClientProvider } from "@tanstack/react-query";
import { RouterProvider } from "@tanstack/react-router";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { I18nProvider } from "react-aria-components";
import { refresh } from "./api/session";
import { queries } from "./app/queries";
import { router } from "./app/router";
import { applyTheme } from "./app/theme";
import { language, loadWords } from "./words";
import "./app/tokens.css";
import "./app/base.css";
import "./app/shell.css";

applyTheme();
document.documentElement.lang = language;

void refresh();
await loadWords();

createRoot(document.getElementById("root") as HTMLElement).render(
  <StrictMode>
    <I18nProvider locale={language === "de" ? "de-DE" : "en-US"}>
      <QueryClientProvider client={queries}>
        <RouterProvider router={router} />
      </QueryClientProvider>
    </I18nProvider>
  </StrictMode>,
);
