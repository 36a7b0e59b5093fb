//! What the reader thinks of an answer, as a whole or of a sentence.

import { useState } from "react";
import { api, ok, R, type Schemas } from "../api/client";
import { useAct, useRepo } from "../app/queries";
import { say } from "../app/toasts";
import { Button } from "../parts/button";
import { Field, Form, Select } from "../parts/form";
import { Dialog } from "../parts/overlay";
import { t } from "../words";
import type { Answer } from "./ask-events";

export function Feedback({ answer, onClose }: { answer: Answer; onClose: () => void }) {
  const repoID = useRepo();
  const said = (about: string) => answer.feedback.find((one) => (one.sentence === null ? "" : String(one.sentence)) === about);
  const [about, setAbout] = useState("");
  const [verdict, setVerdict] = useState<Schemas["FeedbackVerdict"]>(said("")?.verdict ?? "right");
  const [note, setNote] = useState(said("")?.note ?? "");
  const act = useAct(
    () => ok(api.POST(`${R}/answers/{answerID}/feedback`, { params: { path: { repoID, answerID: answer.id } }, body: { sentence: about === "" ? undefined : Number(about), verdict, note: note.trim() || undefined } })),
    {
      stale: [["answer", repoID, answer.id]],
      quiet: true,
      done: () => {
        onClose();
        say(t("Recorded"));
      },
    },
  );
  const choose = (next: string) => {
    setAbout(next);
    setVerdict(said(next)?.verdict ?? "right");
    setNote(said(next)?.note ?? "");
  };
  return (
    <Dialog title={t("Is it right?")} open onClose={onClose}>
      <Form onSubmit={() => act.mutate(undefined)} error={act.error}>
        {answer.sentences.length > 1 && (
          <Select label={t("What you mean")} value={about} onChange={choose} options={[["", t("The whole answer")], ...answer.sentences.map((one) => [String(one.index), one.text.length > 60 ? `${one.text.slice(0, 58)} …` : one.text] as const)]} />
        )}
        <div className="row" role="group" aria-label={t("What you think of it")}>
          {(
            [
              ["right", t("Right")],
              ["wrong", t("Wrong")],
              ["missing", t("Something is missing")],
            ] as const
          ).map(([one, word]) => (
            <Button key={one} primary={verdict === one} aria-pressed={verdict === one} onPress={() => setVerdict(one)}>
              {word}
            </Button>
          ))}
        </div>
        <Field label={t("Note")} area rows={3} value={note} onChange={setNote} hint={t("It is kept with the answer, and changes no fact.")} />
        <div className="row dialog-buttons">
          <Button onPress={onClose}>{t("Cancel")}</Button>
          <Button primary type="submit" busy={act.isPending}>
            {t("Save")}
          </Button>
        </div>
      </Form>
    </Dialog>
  );
}
