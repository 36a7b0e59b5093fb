// The first five calls that everybody makes, by types made from the document.
import createClient from "openapi-fetch";
import type { components, paths } from "./api.js";

function got<T>(answer: { data?: T; error?: components["schemas"]["Problem"] }): T {
  if (answer.error !== undefined || answer.data === undefined) {
    throw new Error(`${answer.error?.code}: ${answer.error?.detail}`);
  }
  return answer.data;
}

const api = createClient<paths>({ baseUrl: process.env.OKT_URL ?? "" });
const me = got(
  await api.POST("/api/v1/auth/register", {
    body: { email: "typescript@example.org", password: "a password for TypeScript", name: "", cookie: false },
  }),
);
api.use({
  onRequest({ request }) {
    request.headers.set("authorization", `Bearer ${me.token}`);
    return request;
  },
});
const repository = got(await api.POST("/api/v1/repositories", { body: { name: "TypeScript" } }));
const path = { repoID: repository.id };
const uploaded = got(
  await api.POST("/api/v1/repositories/{repoID}/sources/upload", {
    params: { path },
    body: { file: new Blob(["Honey bees dance on the comb to tell each other where food is."]), title: "On bees" },
    bodySerializer: (body) => {
      const form = new FormData();
      form.append("file", body.file, "bees.txt");
      form.append("title", body.title ?? "");
      return form;
    },
  }),
);
if (!("source_id" in uploaded)) throw new Error("a text is no list of references");
const sources = got(await api.GET("/api/v1/repositories/{repoID}/sources", { params: { path, query: { sort: "newest" } } }));
const source = sources.data[0];
if (source?.id !== uploaded.source_id) throw new Error("the source is not in the list");
const status: components["schemas"]["SourceStatus"] = source.status;

for (let tries = 0; ; tries += 1) {
  const facts = got(await api.GET("/api/v1/repositories/{repoID}/facts", { params: { path } }));
  const fact = facts.data[0];
  if (fact) {
    console.log(`typescript: ${status}, then: ${fact.text}`);
    break;
  }
  if (tries > 120) throw new Error("there are no facts after a minute");
  await new Promise((resolve) => setTimeout(resolve, 500));
}
