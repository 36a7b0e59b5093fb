//! What a repository gives to other programs and other instances, and what it takes from them.

import { useQuery } from "@tanstack/react-query";
import { Link, useSearch } from "@tanstack/react-router";
import { CircleCheck, FileUp } from "lucide-react";
import { useEffect, useRef, useState } from "react";
import { FileTrigger } from "react-aria-components";
import { api, ok, R, raw, type Schemas } from "../api/client";
import { download, fileName, sample as sampleBundle } from "../app/download";
import { isOver } from "../app/events";
import { reason, useAct, useCan, useRepo, useRepository } from "../app/queries";
import { useTitle } from "../app/title";
import { When } from "../parts/badges";
import { Button } from "../parts/button";
import { Checkbox, Field, Form, Select } from "../parts/form";
import { Confirm } from "../parts/overlay";
import { Empty } from "../parts/states";
import { Table } from "../parts/table";
import { bytes, count, t, tn } from "../words";
import { ChooseGraph, useHasRegistry } from "./exchange-registry";
import { JobLine, useJob } from "./job-line";
import "../parts/list.css";
import "./overview.css";
import "./report.css";

type Taken = { added: number; linked: number };
/** What the job of an import says in the end. */
type ImportOutput = { name: string; sha256: string; dry_run: boolean; rows: Record<string, Taken | number> };
/** What the job of an export says in the end. */
type ExportOutput = { name: string; sha256: string; file: { bytes: number }; registry?: { id: string; new: boolean; signed: boolean } | null };

export default function Exchange() {
  const { data: repository } = useRepository();
  useTitle(t("Import and export"), repository?.name);
  const can = useCan();
  const gives = can("graph:export");
  const takes = can("graph:write");
  return (
    <div className="page reading stack wide">
      <header>
        <h1>{t("Import and export")}</h1>
      </header>
      {gives && <Tables />}
      {gives && <ExportBundle />}
      {takes && <ImportBundle />}
      {!gives && !takes && <Empty title={t("You can't see this")}>{t("Your role in this repository does not include it. An administrator of the repository can change your role.")}</Empty>}
    </div>
  );
}

function Tables() {
  const repoID = useRepo();
  const { data: repository } = useRepository();
  const [busy, setBusy] = useState("");
  const formats = [
    ["jsonld", "jsonld", "JSON-LD", t("Linked data: sources, facts and concepts")],
    ["graphml", "graphml", "GraphML", t("A graph, for Gephi, yEd, Cytoscape or networkx")],
    ["csv", "csv", "CSV", t("A table of facts, for spreadsheets")],
  ] as const;
  const save = async (format: (typeof formats)[number][0], end: string) => {
    setBusy(format);
    await download(`api/v1/repositories/${repoID}/export?format=${format}`, `${fileName(repository?.name ?? repoID)}.${end}`);
    setBusy("");
  };
  return (
    <section className="card stack tight" aria-label={t("For other programs")}>
      <h2>{t("For other programs")}</h2>
      <p className="soft">{t("Without duplicates and rejected facts.")}</p>
      <ul className="stack tight">
        {formats.map(([format, end, name, hint]) => (
          <li key={format} className="row nowrap">
            <span className="grow">
              <strong>{name}</strong> <span className="soft small">{hint}</span>
            </span>
            <Button onPress={() => void save(format, end)} busy={busy === format} aria-label={t("Save as {name}", { name })}>
              {t("Save")}
            </Button>
          </li>
        ))}
      </ul>
      <p className="soft small">{t("References of an investigation or a report are saved from its own page.")}</p>
    </section>
  );
}

function ExportBundle() {
  const repoID = useRepo();
  const { data: repository } = useRepository();
  const [given, setGiven] = useState<{ name: string; description: string; images: boolean; bodies: boolean; to: Schemas["GraphDestination"] }>({ name: "", description: "", images: true, bodies: false, to: "file" });
  const hasRegistry = useHasRegistry();
  const [asked, setAsked] = useState<string | null>(null);
  // Who comes back finds the bundle that was written meanwhile.
  const last = useQuery({
    queryKey: ["last-export", repoID],
    staleTime: 0,
    queryFn: async ({ signal }) => {
      const [found] = (await ok(api.GET(`${R}/jobs`, { params: { path: { repoID }, query: { kind: "export_graph", limit: 1 } }, signal }))).data;
      return found && (found.state === "completed" || !isOver(found)) ? found.id : null;
    },
  });
  const job = asked ?? last.data ?? null;
  const found = useJob(job);
  const act = useAct(
    () =>
      ok(
        api.POST(`${R}/export-graph`, {
          params: { path: { repoID } },
          body: { destination: given.to, name: given.name.trim() || undefined, description: given.description.trim() || undefined, include_images: given.images, include_bodies: given.bodies },
        }),
      ),
    {
      quiet: true,
      done: (begun) => {
        setSure(false);
        setAsked(begun.job_id);
      },
    },
  );
  const [sure, setSure] = useState(false);
  const [saving, setSaving] = useState(false);
  const output = found.data?.output as ExportOutput | undefined;
  const save = async () => {
    setSaving(true);
    await download(`api/v1/repositories/${repoID}/export-graph/${job}/file`, `${fileName(output?.name ?? repoID)}.okt.json.gz`);
    setSaving(false);
  };
  return (
    <section className="card stack" aria-label={t("As a bundle")}>
      <div className="stack tight">
        <h2>{t("As a bundle")}</h2>
        <p className="soft">{t("The whole repository in one file, for another okt: what was paid for here costs nothing there.")}</p>
      </div>
      <Form onSubmit={() => (given.to === "registry" ? setSure(true) : act.mutate(undefined))} error={sure ? undefined : act.error} label={t("As a bundle")}>
        <Field label={t("Name")} value={given.name} placeholder={repository?.name} onChange={(next) => setGiven({ ...given, name: next })} />
        <Field label={t("Description")} area rows={2} value={given.description} onChange={(description) => setGiven({ ...given, description })} />
        <div className="stack tight">
          <Checkbox checked={given.images} onChange={(images) => setGiven({ ...given, images })}>
            {t("With pictures")}
          </Checkbox>
          <Checkbox checked={given.bodies} onChange={(bodies) => setGiven({ ...given, bodies })}>
            {t("With the original files, such as PDFs: look whether you may pass them on")}
          </Checkbox>
        </div>
        {hasRegistry && (
          <Select
            label={t("Where it goes")}
            value={given.to}
            onChange={(to) => setGiven({ ...given, to })}
            options={[
              ["file", t("Into a file")],
              ["registry", t("To the registry, for all who use it")],
            ]}
          />
        )}
        <div>
          <Button type="submit" busy={act.isPending || (job !== null && found.data !== undefined && !isOver(found.data))}>
            {t("Write a bundle")}
          </Button>
        </div>
      </Form>
      {sure && (
        <Confirm title={t("Give the repository to the registry?")} open onClose={() => setSure(false)} onConfirm={() => act.mutate(undefined)} action={t("Give")} busy={act.isPending}>
          <p>{t("All who use the registry can take it, with its facts, concepts and reports. What was given can't be taken back from those who have it.")}</p>
          {given.bodies && <p className="note warn">{t("With the original files, such as PDFs: look whether you may pass them on")}</p>}
          {act.error && <p className="note wrong">{reason(act.error)}</p>}
        </Confirm>
      )}
      {job && (
        <JobLine
          job={found.data}
          error={found.error}
          running={t("The bundle is being written")}
          done={
            <div className="note good stack tight">
              <p>
                <CircleCheck aria-hidden size={16} /> {t("The bundle is ready.")} {output && bytes(output.file.bytes)} {found.data?.finished_at && <When at={found.data.finished_at} />}
              </p>
              {output?.registry && <p>{output.registry.new ? t("The registry {name} has it now.", { name: output.registry.id }) : t("The registry {name} had it already.", { name: output.registry.id })} {output.registry.signed ? t("It is signed.") : t("It is not signed.")}</p>}
              {output && (
                <p className="small break">
                  SHA-256 <code>{output.sha256}</code>
                </p>
              )}
              <div>
                <Button primary onPress={() => void save()} busy={saving}>
                  {t("Download")}
                </Button>
              </div>
              <p className="soft small">{t("It can be downloaded for two days.")}</p>
            </div>
          }
        />
      )}
    </section>
  );
}

const rowNames = (): [string, string][] => [
  ["sources", t("Sources")],
  ["facts", t("Facts")],
  ["concepts", t("Concepts")],
  ["aliases", t("Names of concepts")],
  ["fact_concepts", t("Links of facts to concepts")],
  ["summaries", t("Summaries")],
  ["syntheses", t("Definitions")],
  ["investigations", t("Investigations")],
  ["reports", t("Reports")],
  ["annotations", t("Facts under reports")],
];

function Rows({ output }: { output: ImportOutput }) {
  const rows = rowNames().flatMap(([key, name]) => {
    const taken = output.rows[key];
    return typeof taken === "object" && taken.added + taken.linked > 0 ? [{ key, cells: [name, count(taken.added), count(taken.linked)] }] : [];
  });
  const lost = typeof output.rows.citations_lost === "number" ? output.rows.citations_lost : 0;
  return (
    <>
      {rows.length === 0 ? <p>{t("The bundle is empty.")}</p> : <Table label={t("What comes in")} head={[t("What"), { text: t("New"), number: true }, { text: t("Here already"), number: true }]} rows={rows} />}
      {lost > 0 && <p className="note warn small">{tn(lost, "{n} citation names a fact that is not in the bundle. Its text stays, without a link.", "{n} citations name facts that are not in the bundle. Their text stays, without a link.")}</p>}
    </>
  );
}

function ImportBundle() {
  const repoID = useRepo();
  /** What was chosen, by its name and size. */
  const [chosen, setChosen] = useState<{ name: string; bytes: number } | null>(null);
  const [from, setFrom] = useState<Pick<Schemas["GraphImportBody"], "upload_id" | "registry_graph_id"> | null>(null);
  const [choosing, setChoosing] = useState(false);
  const hasRegistry = useHasRegistry();
  const [trial, setTrial] = useState<string | null>(null);
  const [real, setReal] = useState<string | null>(null);
  const tried = useJob(trial);
  const taken = useJob(real);
  const begin = (body: Schemas["GraphImportBody"]) => ok(api.POST(`${R}/import-graph`, { params: { path: { repoID } }, body }));
  const send = useAct(
    async (given: File | { registry_graph_id: string }) => {
      let source: NonNullable<typeof from>;
      if (given instanceof File) {
        const form = new FormData();
        form.set("file", given);
        const response = await raw(`api/v1/repositories/${repoID}/graph-uploads`, { method: "POST", body: form });
        source = { upload_id: ((await response.json()) as Schemas["GraphUploaded"]).upload_id };
      } else source = given;
      const asked = await begin({ ...source, dry_run: true });
      return { source, job: asked.job_id };
    },
    {
      quiet: true,
      done: ({ source, job }) => {
        setFrom(source);
        setTrial(job);
      },
    },
  );
  const take = useAct(() => begin({ ...from, dry_run: false }), { quiet: true, done: (asked) => setReal(asked.job_id) });
  const preview = tried.data?.state === "completed" ? (tried.data.output as unknown as ImportOutput) : null;
  const result = taken.data?.state === "completed" ? (taken.data.output as unknown as ImportOutput) : null;
  const nothing = preview !== null && Object.values(preview.rows).every((one) => typeof one !== "object" || one.added === 0);
  const choose = (what: { name: string; bytes: number }, given: File | { registry_graph_id: string }) => {
    setChosen(what);
    setFrom(null);
    setTrial(null);
    setReal(null);
    take.reset();
    send.mutate(given);
  };
  const chooseFile = (file: File | undefined) => file && choose({ name: file.name, bytes: file.size }, file);
  const sample = useAct(
    async () => {
      chooseFile(new File([await sampleBundle("sample.okt")], "electric-ferries.okt.json.gz", { type: "application/gzip", lastModified: 0 }));
    },
    { quiet: true },
  );
  const asked = useSearch({ from: "/r/$slug/exchange" }).sample;
  const begun = useRef(false);
  useEffect(() => {
    if (!asked || begun.current) return;
    begun.current = true;
    sample.mutate(undefined);
  }, [asked, sample]);
  // What came with an import is new on every page.
  const told = useRef<string | null>(null);
  const refresh = useAct(async () => {}, { stale: [["repository", repoID], ["sources", repoID], ["facts", repoID], ["concepts", repoID], ["reports", repoID], ["investigations", repoID]] });
  useEffect(() => {
    if (!result || told.current === real) return;
    told.current = real;
    refresh.mutate(undefined);
  }, [result, real, refresh]);
  return (
    <section className="card stack" aria-label={t("Import a bundle")}>
      <div className="stack tight">
        <h2>{t("Import a bundle")}</h2>
        <p className="soft">{t("First you see what would come in. Nothing is fetched and no model is asked; what is here already stays as it is.")}</p>
      </div>
      <div className="row">
        <FileTrigger acceptedFileTypes={[".gz", "application/gzip"]} onSelect={(files) => void chooseFile(files?.[0])}>
          <Button busy={send.isPending}>
            <FileUp aria-hidden /> {t("Choose a bundle")}
          </Button>
        </FileTrigger>
        <Button onPress={() => sample.mutate(undefined)} busy={sample.isPending}>
          {t("Take the sample bundle")}
        </Button>
        {hasRegistry && <Button onPress={() => setChoosing(true)}>{t("From the registry …")}</Button>}
        {chosen && (
          <span className="break">
            {chosen.name} <span className="soft small">{bytes(chosen.bytes)}</span>
          </span>
        )}
      </div>
      {send.isPending && <p role="status">{t("The bundle is looked at")}</p>}
      {(send.error ?? sample.error) && <p className="note wrong">{reason(send.error ?? sample.error)}</p>}
      {trial && !result && (
        <JobLine
          job={tried.data}
          error={tried.error}
          running={t("The bundle is read to its end")}
          done={
            preview && (
              <div className="stack tight">
                <h3 className="break">{t("“{name}” would bring", { name: preview.name })}</h3>
                <Rows output={preview} />
                {nothing && <p className="note">{t("Everything in it is here already.")}</p>}
                {take.error && <p className="note wrong">{reason(take.error)}</p>}
                {!real && (
                  <div>
                    <Button primary onPress={() => take.mutate(undefined)} busy={take.isPending} isDisabled={nothing}>
                      {t("Take it in")}
                    </Button>
                  </div>
                )}
              </div>
            )
          }
        />
      )}
      {real && (
        <JobLine
          job={taken.data}
          error={taken.error}
          running={t("The bundle is taken in")}
          done={
            result && (
              <div className="stack tight">
                <p className="note good">
                  <CircleCheck aria-hidden size={16} /> {t("“{name}” is here.", { name: result.name })}{" "}
                  <Link to="/r/$slug/sources" params={{ slug: repoID }}>
                    {t("To the sources")}
                  </Link>
                </p>
                <Rows output={result} />
              </div>
            )
          }
        />
      )}
      {choosing && (
        <ChooseGraph
          onClose={() => setChoosing(false)}
          onChoose={(graph) => {
            setChoosing(false);
            choose({ name: graph.name, bytes: graph.bytes }, { registry_graph_id: graph.graph_id });
          }}
        />
      )}
    </section>
  );
}
