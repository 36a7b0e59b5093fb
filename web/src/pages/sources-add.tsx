//! Adding sources: files, addresses and DOIs, lists of references. What it may cost is said before.

import { useQuery, useQueryClient } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { CircleCheck, CircleX, FileUp, Loader } from "lucide-react";
import { useEffect, useRef, useState } from "react";
import { DropZone, type FileDropItem, FileTrigger, Tab, TabList, TabPanel, Tabs } from "react-aria-components";
import { ApiError, api, ok, R, raw, type Schemas } from "../api/client";
import { sample } from "../app/download";
import { reason, useRepo } from "../app/queries";
import { complain } from "../app/toasts";
import { Button } from "../parts/button";
import { Field } from "../parts/form";
import { Dialog } from "../parts/overlay";
import { bytes, t, tn } from "../words";
import { addressesOf } from "./addresses";
import "./sources.css";

type Outcome = { state: "waiting" | "sending" | "added" | "existing" | "failed"; message?: string; source?: string };
type Thing = { key: string; label: string; file?: File; address?: string } & Outcome;

/** The service takes a limit for one source, not for all of a list. */
const isList = (thing: Thing) => /\.(bib|ris|json)$/i.test(thing.file?.name ?? "");

/** How many are sent at once. */
const AT_ONCE = 3;

/** Files that are dropped anywhere on the page. */
export function useDropAnywhere(active: boolean, onFiles: (files: File[]) => void): boolean {
  const [over, setOver] = useState(false);
  const act = useRef(onFiles);
  act.current = onFiles;
  useEffect(() => {
    if (!active) return;
    let depth = 0;
    const has = (event: DragEvent) => event.dataTransfer?.types.includes("Files") ?? false;
    const enter = (event: DragEvent) => {
      if (!has(event)) return;
      depth += 1;
      setOver(true);
    };
    const leave = (event: DragEvent) => {
      if (!has(event)) return;
      depth = Math.max(0, depth - 1);
      if (depth === 0) setOver(false);
    };
    const hold = (event: DragEvent) => {
      if (has(event)) event.preventDefault();
    };
    const drop = (event: DragEvent) => {
      depth = 0;
      setOver(false);
      if (!has(event) || event.defaultPrevented) return;
      event.preventDefault();
      const files = [...(event.dataTransfer?.files ?? [])];
      if (files.length > 0) act.current(files);
    };
    addEventListener("dragenter", enter);
    addEventListener("dragleave", leave);
    addEventListener("dragover", hold);
    addEventListener("drop", drop);
    return () => {
      removeEventListener("dragenter", enter);
      removeEventListener("dragleave", leave);
      removeEventListener("dragover", hold);
      removeEventListener("drop", drop);
    };
  }, [active]);
  return over;
}

/** What will read the sources, and whether that costs. */
function useReader() {
  return useQuery({
    queryKey: ["decomposition-providers"],
    staleTime: 300_000,
    queryFn: ({ signal }) => ok(api.GET("/api/v1/sources/decomposition/providers", { signal })),
  });
}

export function AddSources({ files, onClose, investigation }: { files?: File[]; onClose: () => void; investigation?: string }) {
  const repoID = useRepo();
  const client = useQueryClient();
  const [tab, setTab] = useState("files");
  const [things, setThings] = useState<Thing[]>([]);
  const [text, setText] = useState("");
  const [cap, setCap] = useState("");
  const [began, setBegan] = useState(false);
  const stopped = useRef(false);
  const leave = () => {
    stopped.current = true;
    onClose();
  };
  const reader = useReader();
  const model = reader.data?.fact_extraction.find((one) => one.configured)?.model;

  const takeFiles = (list: File[]) => {
    setThings((old) => {
      const known = new Set(old.map((one) => one.key));
      const fresh = list.map((file) => ({ key: `${file.name} ${file.size} ${file.lastModified}`, label: file.name, file, state: "waiting" as const }));
      return [...old, ...fresh.filter((one) => !known.has(one.key))];
    });
  };
  useEffect(() => {
    if (files && files.length > 0) takeFiles(files);
  }, [files]);
  const addresses = addressesOf(text);
  const waiting = [...things.filter((one) => one.state === "waiting" || one.state === "failed"), ...addresses];
  const change = (key: string, to: Outcome) => setThings((old) => old.map((one) => (one.key === key ? { ...one, ...to } : one)));

  const send = async (thing: Thing) => {
    change(thing.key, { state: "sending" });
    const most = cap.trim() === "" ? undefined : Number(cap.replace(",", "."));
    try {
      if (thing.file) {
        const form = new FormData();
        form.set("file", thing.file);
        if (most !== undefined) form.set("max_cost_usd", String(most));
        if (investigation) form.set("investigation_id", investigation);
        const response = await raw(`api/v1/repositories/${repoID}/sources/upload`, { method: "POST", body: form });
        const body = (await response.json()) as Schemas["SourceAccepted"] | Schemas["ImportedList"];
        if ("data" in body) {
          const said = [tn(body.added, "{n} added", "{n} added"), tn(body.existing, "{n} there already", "{n} there already"), tn(body.skipped + body.invalid, "{n} left out", "{n} left out")].join(", ");
          change(thing.key, { state: "added", message: said });
        } else change(thing.key, { state: body.existing ? "existing" : "added", source: body.source_id });
      } else {
        const address = thing.address ?? "";
        const doi = /^(doi:)?10\.\d{4,9}\//i.test(address);
        const body = { ...(doi ? { doi: address.replace(/^doi:/i, "") } : { url: address }), max_cost_usd: most, investigation_id: investigation };
        const accepted = await ok(api.POST(`${R}/sources`, { params: { path: { repoID } }, body }));
        change(thing.key, { state: accepted.existing ? "existing" : "added", source: accepted.source_id });
      }
    } catch (error) {
      if (error instanceof ApiError && error.status === 429 && error.retryAfter !== null) {
        const seconds = Math.min(error.retryAfter, 60);
        change(thing.key, { state: "sending", message: t("waits {n} s for a rate limit", { n: seconds }) });
        await new Promise((resolve) => setTimeout(resolve, seconds * 1000));
        if (!stopped.current) await send(thing);
        return;
      }
      change(thing.key, { state: "failed", message: reason(error) });
    }
  };

  const start = async () => {
    setBegan(true);
    const typed: Thing[] = addresses.map((address) => ({ key: address, label: address, address, state: "waiting" }));
    const known = new Set(things.map((one) => one.key));
    const all = [...things, ...typed.filter((one) => !known.has(one.key))];
    setThings(all);
    setText("");
    const queue = all.filter((one) => one.state === "waiting" || one.state === "failed");
    const work = async () => {
      for (let next = queue.shift(); next && !stopped.current; next = queue.shift()) await send(next);
    };
    await Promise.all(Array.from({ length: AT_ONCE }, work));
    void client.invalidateQueries({ queryKey: ["sources", repoID] });
    void client.invalidateQueries({ queryKey: ["repository", repoID] });
    if (investigation) void client.invalidateQueries({ queryKey: ["investigation", repoID, investigation] });
  };
  const trySample = async () => {
    try {
      takeFiles([new File([await sample("sample.pdf")], "sample.pdf", { type: "application/pdf", lastModified: 0 })]);
    } catch (error) {
      complain(reason(error));
    }
  };
  const sending = things.some((one) => one.state === "sending");
  const done = began && !sending && waiting.length === 0;
  const list = things.find((one) => (one.state === "waiting" || one.state === "failed") && isList(one));
  const badCap = cap.trim() === "" ? undefined : !(Number(cap.replace(",", ".")) >= 0) ? t("This is no amount.") : list && t("A limit is for one source, and {name} is a list of references: add it on its own, without a limit.", { name: list.label });

  return (
    <Dialog title={t("Add sources")} open onClose={leave} wide>
      <div className="stack">
        <Tabs selectedKey={tab} onSelectionChange={(key) => setTab(String(key))} className="tabs">
          <TabList aria-label={t("Where the sources come from")} className="tablist">
            <Tab id="files" className="tab">
              {t("Files")}
            </Tab>
            <Tab id="addresses" className="tab">
              {t("Addresses and DOIs")}
            </Tab>
          </TabList>
          <TabPanel id="files" className="tabpanel">
            <DropZone
              className="dropzone"
              aria-label={t("Drop files here")}
              onDrop={(event) => {
                const items = event.items.filter((item): item is FileDropItem => item.kind === "file");
                void Promise.all(items.map((item) => item.getFile())).then(takeFiles);
              }}
            >
              <FileUp aria-hidden />
              <p>{t("Drop files here: PDF, HTML, text, Markdown, or a list of references (.bib, .ris, CSL-JSON)")}</p>
              <div className="row">
                <FileTrigger allowsMultiple onSelect={(list) => takeFiles([...(list ?? [])])}>
                  <Button>{t("Choose files")}</Button>
                </FileTrigger>
                <Button quiet onPress={() => void trySample()}>
                  {t("Take the sample paper")}
                </Button>
              </div>
            </DropZone>
          </TabPanel>
          <TabPanel id="addresses" className="tabpanel stack tight">
            <Field label={t("Addresses and DOIs")} area rows={6} value={text} onChange={setText} placeholder={"https://…\n10.1000/182\narXiv:1706.03762"} hint={addresses.length > 0 ? tn(addresses.length, "{n} found in the text", "{n} found in the text") : t("One on each line, or a whole text with addresses in it.")} />
          </TabPanel>
        </Tabs>
        {things.length > 0 && (
          <ul className="things" aria-label={t("What is added")}>
            {things.map((thing) => (
              <li key={thing.key} className="row nowrap">
                {thing.state === "sending" ? <Loader aria-hidden size={16} /> : thing.state === "failed" ? <CircleX aria-hidden size={16} className="is-wrong" /> : thing.state === "waiting" ? <span className="dot" aria-hidden /> : <CircleCheck aria-hidden size={16} className="is-good" />}
                <span className="grow break">
                  {thing.label} {thing.file && <span className="soft small">{bytes(thing.file.size)}</span>}
                  {thing.message && <span className={thing.state === "failed" ? "small is-wrong thing-message" : "small soft thing-message"}>{thing.message}</span>}
                </span>
                {thing.state === "existing" && <span className="soft small">{t("there already")}</span>}
                {thing.source && (
                  <Link to="/r/$slug/sources/$id" params={{ slug: repoID, id: thing.source }} onClick={onClose} className="small">
                    {t("Open")}
                  </Link>
                )}
                {thing.state === "waiting" && (
                  <Button small quiet onPress={() => setThings((old) => old.filter((one) => one.key !== thing.key))} aria-label={t("Leave out {name}", { name: thing.label })}>
                    ×
                  </Button>
                )}
              </li>
            ))}
          </ul>
        )}
        {model !== undefined &&
          (model.startsWith("builtin-") ? (
            <p className="note">{t("No model is asked for facts: they are the sentences as they stand. Where the installation has a model for concepts or for the search by meaning, that may cost money.")}</p>
          ) : (
            <div className="note stack tight">
              <p>{t("{model} reads them and costs money. What a source costs is known when its text is there; set what each may cost at most.", { model })}</p>
              <Field label={t("At most for each source, in US dollars")} inputMode="decimal" value={cap} onChange={setCap} placeholder={t("no limit of its own")} error={badCap} />
            </div>
          ))}
        <div className="row dialog-buttons">
          <Button onPress={leave}>{done ? t("Close") : sending ? t("Stop") : t("Cancel")}</Button>
          {!done && (
            <Button primary isDisabled={waiting.length === 0 || badCap !== undefined} busy={sending} onPress={() => void start()}>
              {waiting.length === 0 ? t("Add") : tn(waiting.length, "Add {n} source", "Add {n} sources")}
            </Button>
          )}
        </div>
      </div>
    </Dialog>
  );
}
