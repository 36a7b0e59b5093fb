//! The OpenAPI document as people read it: what every operation can refuse is said once.

export type Problem = { code: string; status: number; title: string; advice: string };
type Response = { description?: string };
type Operation = { description?: string; summary?: string; responses?: Record<string, Response>; security?: unknown[]; "x-guard"?: string };
export type Document = {
  info: { description?: string };
  paths: Record<string, Record<string, Operation>>;
  "x-problems"?: Problem[];
};

/** A refusal that most operations know has nothing in its description but the codes. */
const CODES = /^Problem: ([a-z_]+(?:, [a-z_]+)*)$/;
/** How many operations of a hundred know a refusal that is said once for all. */
const COMMON = 0.3;

/** The address of an installation in the examples. */
const EXAMPLE = "http://localhost:8080/";

/** What an operation needs, in words. */
function needed(guard: string | undefined): string {
  if (!guard || guard === "public") return "";
  const right = /^needs (\S+)$/.exec(guard)?.[1];
  if (right) return `Needs the permission \`${right}\`.`;
  return guard === "session" ? "Needs the session of a person: keys and programs are refused." : "Needs a credential of any kind.";
}

/** Takes from each operation the refusals that most of them know, and tells all codes at the end of the introduction. `address`: that of the installation. */
export function readable(document: Document, address: string): Document {
  const operations = Object.values(document.paths).flatMap((methods) => Object.values(methods).filter((one) => one.responses));
  const known = new Map<string, number>();
  for (const { responses = {} } of operations) {
    for (const [status, { description = "" }] of Object.entries(responses)) {
      if (CODES.test(description)) known.set(`${status} ${description}`, (known.get(`${status} ${description}`) ?? 0) + 1);
    }
  }
  const common = new Set([...known].filter(([, n]) => n > operations.length * COMMON).map(([key]) => key));
  for (const operation of operations) {
    const kept: [string, Response][] = [];
    for (const [status, response] of Object.entries(operation.responses ?? {})) {
      if (!common.has(`${status} ${response.description}`)) kept.push([status, response]);
    }
    operation.responses = Object.fromEntries(kept);
    const right = needed(operation["x-guard"]);
    operation.description = [operation.description, right].filter(Boolean).join("\n\n");
  }
  const problems = document["x-problems"] ?? [];
  const statuses = [...common].map((key) => key.replace(" Problem: ", ": ").replace(/([a-z_]+)(?=,|$)/g, "`$1`")).sort();
  // Scalar's list of headings takes underscores for emphasis, and shows what would escape them. Either way the heading has the same address.
  const lines = problems.map((one) => `### ${one.code.replaceAll("_", " ")}\n\n\`${one.code}\` · ${one.status} · ${one.title}. ${one.advice}`);
  const errors = `## Errors

A refusal is a problem (RFC 9457, \`application/problem+json\`). Programs should look at its \`code\`, which is never renamed and never reused; \`detail\` is for people.

Most operations can refuse with these, which are not repeated below:

${statuses.map((one) => `- ${one}`).join("\n")}

${lines.join("\n\n")}`;
  const introduction = (document.info.description ?? "").replaceAll(EXAMPLE, address);
  document.info.description = `${introduction}\n\n${errors}`;
  return document;
}
