//! What is done to sources that are there.

import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { api, ok, R, type Schemas } from "../api/client";
import { reason, useAct, useRepo } from "../app/queries";
import { say } from "../app/toasts";
import { Button } from "../parts/button";
import { Field, Form, Select } from "../parts/form";
import { Confirm, Dialog } from "../parts/overlay";
import { Skeleton } from "../parts/states";
import { sourceTitle } from "../parts/fact";
import { bytes, count, dollars, t, tn } from "../words";

type Row = Schemas["SourceSummary"];

/** Says what would go before it goes. */
export function DeleteSources({ sources, onClose, onDone }: { sources: Row[]; onClose: () => void; onDone: () => void }) {
  const repoID = useRepo();
  const preview = useQuery({
    queryKey: ["delete-preview", repoID, ...sources.map((one) => one.id)],
    staleTime: 0,
    queryFn: async ({ signal }) => {
      const sum = { facts: 0, images: 0, bytes: 0 };
      for (const { id } of sources) {
        const one = await ok(api.DELETE(`${R}/sources/{sourceID}`, { params: { path: { repoID, sourceID: id }, query: { dry_run: true } }, signal }));
        if (!one) continue;
        sum.facts += one.facts;
        sum.images += one.images;
        sum.bytes += one.bytes;
      }
      return sum;
    },
  });
  const act = useAct(
    async () => {
      for (const { id } of sources) await ok(api.DELETE(`${R}/sources/{sourceID}`, { params: { path: { repoID, sourceID: id } } }));
    },
    {
      stale: [["sources", repoID], ["facts", repoID], ["repository", repoID]],
      done: () => {
        say(tn(sources.length, "{n} source deleted", "{n} sources deleted"));
        onDone();
      },
    },
  );
  const only = sources[0];
  return (
    <Confirm title={t("Delete sources?")} open onClose={onClose} onConfirm={() => act.mutate(undefined)} action={t("Delete")} busy={act.isPending} unsure={!preview.data}>
      <p className="break">{sources.length === 1 && only ? <strong>{sourceTitle(only)}</strong> : tn(sources.length, "{n} source", "{n} sources")}</p>
      {preview.isPending ? (
        <Skeleton rows={1} height={24} />
      ) : preview.error ? (
        <div className="note wrong row">
          <span>{reason(preview.error)}</span>
          <Button onPress={() => void preview.refetch()}>{t("Try again")}</Button>
        </div>
      ) : (
        <p>
          {tn(preview.data.facts, "{n} fact goes with it that no other source supports", "{n} facts go with it that no other source supports")}, {tn(preview.data.images, "{n} picture", "{n} pictures")}, {bytes(preview.data.bytes)}.
        </p>
      )}
      <p className="soft small">{t("This can't be undone. Facts that other sources support stay.")}</p>
    </Confirm>
  );
}

export function MarkSource({ source, onClose }: { source: Row; onClose: () => void }) {
  const repoID = useRepo();
  const path = { repoID, sourceID: source.id };
  const [kind, setKind] = useState<Schemas["MarkKind"]>(source.mark?.kind ?? "retracted");
  const [why, setWhy] = useState(source.mark?.reason ?? "");
  const stale = [["sources", repoID], ["source", repoID, source.id], ["facts", repoID], ["source-facts", repoID, source.id]];
  const unmark = async () => {
    await ok(api.DELETE(`${R}/sources/{sourceID}/mark`, { params: { path } }));
  };
  const remove = useAct(unmark, { stale, done: onClose });
  const put = useAct(() => ok(api.PUT(`${R}/sources/{sourceID}/mark`, { params: { path }, body: { kind, reason: why || undefined } })), {
    stale,
    quiet: true,
    done: () => {
      onClose();
      say(t("Marked"), source.mark ? undefined : () => remove.mutateAsync(undefined));
    },
  });
  return (
    <Dialog title={t("Mark a source")} open onClose={onClose}>
      <Form onSubmit={() => put.mutate(undefined)} error={put.error}>
        <p className="break">{sourceTitle(source)}</p>
        <Select
          label={t("It was")}
          value={kind}
          onChange={setKind}
          options={[
            ["retracted", t("retracted")],
            ["superseded", t("superseded")],
          ]}
        />
        <Field label={t("Reason")} area rows={3} value={why} onChange={setWhy} hint={t("What rests on it says so from now on. Nothing is deleted.")} />
        <div className="row dialog-buttons">
          {source.mark && (
            <Button danger onPress={() => remove.mutate(undefined)}>
              {t("Remove the mark")}
            </Button>
          )}
          <Button onPress={onClose}>{t("Cancel")}</Button>
          <Button primary type="submit" busy={put.isPending}>
            {t("Mark")}
          </Button>
        </div>
      </Form>
    </Dialog>
  );
}

/** What an extraction would cost, before it is asked for. */
export function Estimate({ ids }: { ids: string[] }) {
  const repoID = useRepo();
  const estimate = useQuery({
    queryKey: ["estimate", repoID, ...ids],
    queryFn: ({ signal }) => ok(api.POST(`${R}/sources/estimate`, { params: { path: { repoID } }, body: { source_ids: ids }, signal })),
  });
  if (estimate.isPending) return <Skeleton rows={1} height={40} />;
  if (estimate.error) return <p className="note warn">{reason(estimate.error)}</p>;
  const { total, model, basis } = estimate.data;
  // A model may be asked for concepts only.
  const extractive = model.startsWith("builtin-");
  if (extractive && total.calls === 0) return <p className="note good">{t("No model is asked for facts or concepts, and they cost nothing.")}</p>;
  return (
    <p className="note">
      <strong>{dollars(total.usd)}</strong> — {extractive ? t("for concepts") : model}, {tn(total.calls, "{n} call", "{n} calls")}, {t("{n} tokens", { n: count(total.tokens_in + total.tokens_out) })}.{" "}
      <span className="soft">{basis === "history" ? t("Estimated from what this repository has used.") : t("Estimated by a rule of thumb.")}</span>
    </p>
  );
}

export function ProcessSource({ source, onClose }: { source: Row; onClose: () => void }) {
  const repoID = useRepo();
  const act = useAct(() => ok(api.POST(`${R}/sources/{sourceID}/process`, { params: { path: { repoID, sourceID: source.id } } })), {
    stale: [["sources", repoID], ["source", repoID, source.id]],
    done: () => {
      say(t("Facts are being found again"));
      onClose();
    },
  });
  return (
    <Dialog title={t("Find facts again?")} open onClose={onClose}>
      <div className="stack">
        <p className="break">{sourceTitle(source)}</p>
        <Estimate ids={[source.id]} />
        <div className="row dialog-buttons">
          <Button onPress={onClose}>{t("Cancel")}</Button>
          <Button primary onPress={() => act.mutate(undefined)} busy={act.isPending}>
            {t("Find facts")}
          </Button>
        </div>
      </div>
    </Dialog>
  );
}
