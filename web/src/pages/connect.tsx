//! How agents are connected, and whether they can be.

import { useQuery } from "@tanstack/react-query";
import { Copy } from "lucide-react";
import { BASE } from "../api/session";
import { TopShell } from "../app/shell";
import { complain, say } from "../app/toasts";
import { useTitle } from "../app/title";
import { Button } from "../parts/button";
import { t } from "../words";
import { AccountTabs } from "./account-tabs";
import "../parts/form.css";

const MCP = new URL("mcp", BASE).href;
const LOCAL = /^(localhost|127\.\d+\.\d+\.\d+|\[::1\]|10\..*|192\.168\..*|172\.(1[6-9]|2\d|3[01])\..*|[^.]+)$/;

type Found = { well: boolean; text: string };

/** Goes the way of a client that was given nothing but the address. */
async function check(signal: AbortSignal): Promise<Found> {
  const headers = { "content-type": "application/json", accept: "application/json, text/event-stream" };
  const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/list" });
  const asked = await fetch(MCP, { method: "POST", headers, body, credentials: "omit", signal });
  const told = /resource_metadata="([^"]+)"/.exec(asked.headers.get("www-authenticate") ?? "")?.[1];
  if (asked.status !== 401) return { well: false, text: t("The address answers {status} and not 401: something in between does not pass it on.", { status: String(asked.status) }) };
  if (!told || new URL(told).origin !== new URL(MCP).origin) return { well: false, text: t("The service goes by another address; an operator sets oauth.issuer.") };
  const described = await fetch(told, { credentials: "omit", signal });
  const document: unknown = described.ok ? await described.json() : null;
  const resource = document && typeof document === "object" && "resource" in document ? document.resource : null;
  if (resource !== MCP) return { well: false, text: t("The service goes by another address; an operator sets oauth.issuer.") };
  return { well: true, text: t("The address answers, and says how to sign in.") };
}

function Block({ title, text }: { title: string; text: string }) {
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text);
      say(t("Copied"));
    } catch {
      complain(t("The browser does not let this page copy."));
    }
  };
  return (
    <section className="stack tight" aria-label={title}>
      <div className="row">
        <h2 className="grow">{title}</h2>
        <Button small onPress={() => void copy()} aria-label={t("Copy what {name} needs", { name: title })}>
          <Copy aria-hidden /> {t("Copy")}
        </Button>
      </div>
      <pre className="prompt">{text}</pre>
    </section>
  );
}

export default function Connect() {
  useTitle(t("Agents"), t("Account"));
  const found = useQuery({ queryKey: ["mcp", "check"], queryFn: ({ signal }) => check(signal), retry: false });
  const address = new URL(MCP);
  const hidden = address.protocol !== "https:" || LOCAL.test(address.hostname);
  const file = (entry: object) => JSON.stringify(entry, null, 2);
  return (
    <TopShell>
      <div className="page reading">
        <header>
          <h1>{t("Account")}</h1>
        </header>
        <AccountTabs />
        <div className="stack">
          <p>{t("Agents such as Claude, ChatGPT and Cursor use what you know here by this address. They ask you what they may do, or use a key of yours.")}</p>
          <p role="status" className={found.data?.well === false || found.isError ? "note warn" : "note"}>
            {found.isPending ? t("Trying the address …") : found.isError ? t("The address does not answer.") : found.data.text}
          </p>
          {hidden && <p className="note warn">{t("Agents on the web, such as Claude and ChatGPT, reach public https addresses only. This one is for agents in its network.")}</p>}
          <Block title="Claude, ChatGPT" text={MCP} />
          <Block title="Claude Code" text={`claude mcp add --transport http okt ${MCP}`} />
          <Block title="Cursor" text={file({ mcpServers: { okt: { url: MCP } } })} />
          <Block title="VS Code" text={file({ servers: { okt: { type: "http", url: MCP } } })} />
          <Block title="Codex" text={`[mcp_servers.okt]\nurl = "${MCP}"\nbearer_token_env_var = "OKT_API_KEY"`} />
          <Block title="Inspector" text={`npx @modelcontextprotocol/inspector --cli ${MCP} --transport http --header "Authorization: Bearer okt_…" --method tools/list`} />
          <Block title={t("Agents that start a program")} text={`OKT_API_KEY=okt_… okt mcp --url ${BASE.replace(/\/$/, "")}`} />
          <p className="soft">{t("Claude and ChatGPT take the address under Settings, Connectors. With a key, send the header Authorization: Bearer and the key.")}</p>
        </div>
      </div>
    </TopShell>
  );
}
