//! Questions, and the sources that belong to each.

import { Link, useNavigate } from "@tanstack/react-router";
import { FolderSearch, Plus } from "lucide-react";
import { useState } from "react";
import { ApiError, api, ok, R, type Schemas } from "../api/client";
import { useAct, useCan, usePages, useRepo, useRepository } from "../app/queries";
import { useTitle } from "../app/title";
import { When } from "../parts/badges";
import { Button } from "../parts/button";
import { Field, Form } from "../parts/form";
import { LongList } from "../parts/list";
import { Dialog } from "../parts/overlay";
import { Empty } from "../parts/states";
import { t, tn } from "../words";

export default function Investigations() {
  const repoID = useRepo();
  const { data: repository } = useRepository();
  useTitle(t("Investigations"), repository?.name);
  const can = useCan();
  const navigate = useNavigate();
  const [making, setMaking] = useState(false);
  const [given, setGiven] = useState({ title: "", topic: "" });
  const pages = usePages<Schemas["InvestigationSummary"]>(["investigations", repoID], (cursor, signal) => ok(api.GET(`${R}/investigations`, { params: { path: { repoID }, query: { cursor, limit: 100 } }, signal })));
  const act = useAct(() => ok(api.POST(`${R}/investigations`, { params: { path: { repoID } }, body: { title: given.title, topic: given.topic || undefined } })), {
    stale: [["investigations", repoID]],
    quiet: true,
    done: (made) => void navigate({ to: "/r/$slug/investigations/$id", params: { slug: repoID, id: made.id } }),
  });
  const error = act.error instanceof ApiError ? act.error : null;
  const mayMake = can("investigation:write");
  return (
    <div className="page">
      <header>
        <h1>{t("Investigations")}</h1>
        {mayMake && (
          <Button primary onPress={() => setMaking(true)}>
            <Plus aria-hidden /> {t("New investigation")}
          </Button>
        )}
      </header>
      <LongList
        pages={pages}
        id={(one) => one.id}
        label={t("Investigations")}
        height={66}
        empty={
          <Empty icon={<FolderSearch aria-hidden />} title={t("No investigations yet")} action={mayMake ? <Button primary onPress={() => setMaking(true)}>{t("New investigation")}</Button> : undefined}>
            {t("An investigation groups the sources of one question: what they say, how far they are read, and what they cost.")}
          </Empty>
        }
        row={(one) => (
          <article className="item">
            <Link to="/r/$slug/investigations/$id" params={{ slug: repoID, id: one.id }} className="item-main" data-main>
              <strong>{one.title}</strong>
            </Link>
            {one.topic && <p className="soft clip">{one.topic}</p>}
            <div className="item-more">
              <span>{tn(one.source_count, "{n} source", "{n} sources")}</span>
              <When at={one.updated_at} />
            </div>
          </article>
        )}
      />
      {making && (
        <Dialog title={t("New investigation")} open onClose={() => setMaking(false)}>
          <Form onSubmit={() => act.mutate(undefined)} error={act.error}>
            <Field label={t("Title")} autoFocus value={given.title} onChange={(title) => setGiven({ ...given, title })} error={error?.field("title")} />
            <Field label={t("What is asked")} area rows={4} value={given.topic} onChange={(topic) => setGiven({ ...given, topic })} error={error?.field("topic")} />
            <div className="row dialog-buttons">
              <Button onPress={() => setMaking(false)}>{t("Cancel")}</Button>
              <Button primary type="submit" busy={act.isPending}>
                {t("Create")}
              </Button>
            </div>
          </Form>
        </Dialog>
      )}
    </div>
  );
}
