//! Texts that are held against the facts.

import { Link, useNavigate } from "@tanstack/react-router";
import { BookOpenText, Plus } from "lucide-react";
import { useState } from "react";
import { ApiError, api, ok, R, type Schemas } from "../api/client";
import { useAct, useCan, usePages, useRepo, useRepository } from "../app/queries";
import { useTitle } from "../app/title";
import { Badge, When } from "../parts/badges";
import { Button } from "../parts/button";
import { Field, Form } from "../parts/form";
import { LongList } from "../parts/list";
import { Dialog } from "../parts/overlay";
import { Empty } from "../parts/states";
import { t, tn } from "../words";
import { FileTrigger } from "react-aria-components";

export default function Reports() {
  const repoID = useRepo();
  const { data: repository } = useRepository();
  useTitle(t("Reports"), repository?.name);
  const can = useCan();
  const [making, setMaking] = useState(false);
  const mayMake = can("report:write");
  const pages = usePages<Schemas["ReportSummary"]>(["reports", repoID], (cursor, signal) => ok(api.GET(`${R}/reports`, { params: { path: { repoID }, query: { cursor, limit: 100 } }, signal })));
  return (
    <div className="page">
      <header>
        <h1>{t("Reports")}</h1>
        {mayMake && (
          <Button primary onPress={() => setMaking(true)}>
            <Plus aria-hidden /> {t("New report")}
          </Button>
        )}
      </header>
      <LongList
        pages={pages}
        id={(one) => one.id}
        label={t("Reports")}
        height={62}
        empty={
          <Empty icon={<BookOpenText aria-hidden />} title={t("No reports yet")} action={mayMake ? <Button primary onPress={() => setMaking(true)}>{t("New report")}</Button> : undefined}>
            {t("Write or paste a text: each sentence is held against the facts, and stays so when facts change.")}
          </Empty>
        }
        row={(one) => (
          <article className="item">
            <Link to="/r/$slug/reports/$id" params={{ slug: repoID, id: one.id }} className="item-main" data-main>
              <strong>{one.title}</strong>
            </Link>
            <div className="item-more">
              <ReportStatus report={one} />
              <span>{tn(one.claim_count, "{n} claim", "{n} claims")}</span>
              <When at={one.checked_at ?? one.updated_at} />
            </div>
          </article>
        )}
      />
      {making && (
        <Dialog title={t("New report")} open onClose={() => setMaking(false)} wide>
          <NewReport onClose={() => setMaking(false)} />
        </Dialog>
      )}
    </div>
  );
}

export function ReportStatus({ report }: { report: Schemas["ReportSummary"] }) {
  if (report.status === "failed") return <Badge tone="wrong" title={report.failure?.message}>{t("check failed")}</Badge>;
  if (report.status === "annotated") return <Badge tone="good">{t("checked")}</Badge>;
  return <Badge tone="accent">{t("being checked")}</Badge>;
}

export function NewReport({ text = "", onClose }: { text?: string; onClose: () => void }) {
  const repoID = useRepo();
  const navigate = useNavigate();
  const [given, setGiven] = useState({ title: "", body: text });
  const act = useAct(() => ok(api.POST(`${R}/reports`, { params: { path: { repoID } }, body: { title: given.title, body_markdown: given.body } })), {
    stale: [["reports", repoID]],
    quiet: true,
    done: (made) => {
      onClose();
      void navigate({ to: "/r/$slug/reports/$id", params: { slug: repoID, id: made.id } });
    },
  });
  const error = act.error instanceof ApiError ? act.error : null;
  return (
    <Form onSubmit={() => act.mutate(undefined)} error={act.error}>
      <Field label={t("Title")} autoFocus value={given.title} onChange={(title) => setGiven({ ...given, title })} error={error?.field("title")} />
      <Field label={t("Text, in Markdown")} area rows={14} value={given.body} onChange={(body) => setGiven({ ...given, body })} error={error?.field("body_markdown")} />
      <div className="row dialog-buttons">
        <FileTrigger
          acceptedFileTypes={[".md", ".txt", "text/markdown", "text/plain"]}
          onSelect={(files) => {
            const file = files?.[0];
            if (file) void file.text().then((body) => setGiven((old) => ({ title: old.title || file.name.replace(/\.\w+$/, ""), body })));
          }}
        >
          <Button quiet>{t("From a file")}</Button>
        </FileTrigger>
        <span className="grow" />
        <Button onPress={onClose}>{t("Cancel")}</Button>
        <Button primary type="submit" busy={act.isPending}>
          {t("Create and check")}
        </Button>
      </div>
    </Form>
  );
}
