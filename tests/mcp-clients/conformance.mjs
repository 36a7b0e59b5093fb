// The conformance suite of the protocol, the inspector and both TypeScript clients against a running okt.
//
// None of them can be given a key everywhere, so a proxy on loopback adds it and passes everything else on.
import assert from "node:assert/strict";
import { execFile, spawn } from "node:child_process";
import { createServer, request } from "node:http";
import { join } from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";

const run = promisify(execFile);
const okt = new URL(process.env.OKT_URL);
const key = process.env.OKT_API_KEY;
const bin = join(process.env.OKT_CLIENTS, "node_modules/.bin");

const proxy = createServer((asked, answered) => {
  const headers = { ...asked.headers, authorization: `Bearer ${key}` };
  const passed = request({ host: okt.hostname, port: okt.port, path: asked.url, method: asked.method, headers }, (from) => {
    answered.writeHead(from.statusCode, from.headers);
    from.pipe(answered);
  });
  passed.on("error", () => answered.destroy());
  answered.on("close", () => passed.destroy());
  asked.pipe(passed);
});
await new Promise((listening) => proxy.listen(0, "127.0.0.1", listening));
const url = `http://127.0.0.1:${proxy.address().port}/mcp`;
test.after(() => proxy.close());

const everywhere = ["tools-list", "resources-list", "prompts-list"];
const older = ["server-initialize", "ping", "server-session-lifecycle", ...everywhere];
const scenarios = {
  "2025-06-18": older,
  "2025-11-25": [...older, "dns-rebinding-protection"],
  "2026-07-28": [
    ...everywhere,
    "completion-complete",
    "dns-rebinding-protection",
    "caching",
    "http-header-validation",
    "sep-2164-resource-not-found",
    "server-stateless",
  ],
};

// A tool takes what comes out of a program that failed as well.
async function said(program, ...args) {
  try {
    const { stdout, stderr } = await run(process.execPath, [join(bin, program), ...args], { timeout: 60_000, maxBuffer: 1 << 26 });
    return { code: 0, text: stdout + stderr };
  } catch (error) {
    return { code: error.code ?? 1, text: `${error.stdout ?? ""}${error.stderr ?? ""}` };
  }
}

test("conformance", { concurrency: 2 }, async (suite) => {
  const all = Object.entries(scenarios).flatMap(([version, names]) => names.map((name) => [version, name]));
  await Promise.all(
    all.map(([version, name]) =>
      suite.test(`${name} ${version}`, async () => {
        const baseline = join(process.env.OKT_TESTS, "expected-failures.yml");
        const { code, text } = await said(
          "conformance", "server", "--url", url, "--scenario", name, "--spec-version", version, "--expected-failures", baseline,
        );
        assert.equal(code, 0, text);
      }),
    ),
  );
});

test("inspector", async (suite) => {
  for (const era of ["legacy", "modern"]) {
    for (const method of ["tools/list", "resources/list", "prompts/list"]) {
      await suite.test(`${method} ${era}`, async () => {
        const strict = method === "tools/list" ? ["--strict"] : [];
        const { code, text } = await said(
          "mcp-inspector", "--cli", url, "--transport", "http", "--protocol-era", era, "--method", method, ...strict,
        );
        assert.equal(code, 0, text);
      });
    }
  }
});

// What a person does in a browser: sign in, and allow.
async function consent(question) {
  // A cookie that is set again takes the place of the one before.
  const cookies = new Map();
  const open = async (address, form) => {
    const headers = { cookie: [...cookies].map((one) => one.join("=")).join("; "), origin: okt.origin, "content-type": "application/x-www-form-urlencoded" };
    const body = form && new URLSearchParams(form).toString();
    const answer = await fetch(address, { method: form ? "POST" : "GET", headers, body, redirect: "manual" });
    for (const [, name, value] of answer.headers.getSetCookie().map((one) => one.match(/^([^=]*)=([^;]*)/))) cookies.set(name, value);
    const next = answer.headers.get("location");
    // The last step leads back to the client.
    return next ? open(new URL(next, address)) : answer.text();
  };
  const hidden = (page, name) => page.match(new RegExp(`name="${name}" value="([^"]*)"`))?.[1] ?? assert.fail(page);
  const form = (page) => ({ flow: hidden(page, "flow"), token: hidden(page, "token") });
  const signIn = await open(question);
  const person = { email: process.env.OKT_EMAIL, password: process.env.OKT_PASSWORD };
  const decide = await open(new URL("/api/v1/oauth/authorize/login", okt), { ...form(signIn), ...person });
  await open(new URL("/api/v1/oauth/authorize", okt), { ...form(decide), repositories: "all", decision: "allow" });
}

test("conformance of the authorization server", { timeout: 120_000 }, async () => {
  const port = process.env.OKT_CALLBACK_PORT;
  const registration = { client_name: "conformance", redirect_uris: [`http://127.0.0.1:${port}/callback`], token_endpoint_auth_method: "none" };
  const registered = await fetch(new URL("/api/v1/oauth/register", okt), {
    method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(registration),
  });
  const { client_id } = await registered.json();
  const args = ["authorization", "--url", okt.origin, "--client-id", client_id, "--resource", new URL("/mcp", okt).href, "-p", port];
  const suite = spawn(process.execPath, [join(bin, "conformance"), ...args]);
  let text = "";
  let asked = false;
  const listen = (piece) => {
    text += piece;
    const question = text.match(/^https?:\S+response_type=\S+$/m)?.[0];
    if (question && !asked && text.includes("Waiting")) {
      asked = true;
      consent(question).catch((error) => {
        text += `\n${error.stack}`;
        suite.kill();
      });
    }
  };
  suite.stdout.setEncoding("utf8").on("data", listen);
  suite.stderr.setEncoding("utf8").on("data", listen);
  const code = await new Promise((closed) => suite.on("close", closed));
  assert.equal(code, 0, text);
  assert.ok(asked, text);
});

async function uses(client) {
  const { tools } = await client.listTools();
  assert.ok(tools.length >= 24, `${tools.length} tools`);
  const found = await client.callTool({ name: "search", arguments: { query: "bees" } });
  const [first] = found.structuredContent.results;
  const fetched = await client.callTool({ name: "fetch", arguments: { id: first.id } });
  assert.equal(fetched.structuredContent.url, first.url);
  const refused = await client.callTool({ name: "get_fact", arguments: { fact_id: "x" } });
  assert.equal(refused.isError, true);
  const { resources } = await client.listResources();
  const read = await client.readResource({ uri: resources[0].uri });
  assert.ok(JSON.parse(read.contents[0].text).length >= 1);
  const prompt = await client.getPrompt({ name: "weigh_claim", arguments: { claim: "Bees dance." } });
  assert.equal(prompt.messages.length, 2);
  const source = first.id.startsWith("source:") ? first.id : found.structuredContent.results.find((row) => row.id.startsWith("source:")).id;
  const id = source.slice("source:".length).split("@")[0];
  const done = await client.callTool({ name: "get_progress", arguments: { source_id: id, wait_s: 5 } });
  assert.equal(done.structuredContent.state, "done");
  await client.close();
}

test("TypeScript SDK 1", async () => {
  const { Client } = await import("@modelcontextprotocol/sdk/client/index.js");
  const { StreamableHTTPClientTransport } = await import("@modelcontextprotocol/sdk/client/streamableHttp.js");
  const client = new Client({ name: "test", version: "1" });
  await client.connect(new StreamableHTTPClientTransport(new URL(url)));
  await uses(client);
});

test("TypeScript client 2", async (suite) => {
  const { Client, StreamableHTTPClientTransport } = await import("@modelcontextprotocol/client");
  for (const options of [{}, { versionNegotiation: { mode: "auto" } }]) {
    await suite.test(JSON.stringify(options), async () => {
      const client = new Client({ name: "test", version: "1" }, options);
      await client.connect(new StreamableHTTPClientTransport(new URL(url)));
      await uses(client);
    });
  }
});
