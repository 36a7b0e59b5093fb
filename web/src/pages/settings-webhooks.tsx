//! Programs that are told what happens here.

import { CircleCheck, CircleX, Clock, Plus, TriangleAlert, Webhook as WebhookIcon } from "lucide-react";
import { useState } from "react";
import { ApiError, api, ok, R, type Schemas } from "../api/client";
import { useAct, useCan, usePages, useRepo } from "../app/queries";
import { say } from "../app/toasts";
import { Badge, When } from "../parts/badges";
import { Button } from "../parts/button";
import { Checkbox, Field, Form, Select } from "../parts/form";
import { LongList } from "../parts/list";
import { Confirm, Dialog, Menu, MenuItem } from "../parts/overlay";
import { Secret } from "../parts/secret";
import { Empty } from "../parts/states";
import { exactly, t, tn } from "../words";

type Webhook = Schemas["Webhook"];
type WebhookDelivery = Schemas["WebhookDelivery"];
type WebhookEvent = Schemas["WebhookEvent"];
const EVENTS: readonly WebhookEvent[] = ["source.processed", "source.failed", "report.health_changed", "graph.exported", "answer.done", "answer.evidence_changed"];
const NEAR = { size: 14, "aria-hidden": true } as const;

function eventWord(event: string): string {
  const words: Record<string, string> = {
    "source.processed": t("A source has been read"),
    "source.failed": t("A source could not be read"),
    "report.health_changed": t("A claim of a report stands otherwise"),
    "graph.exported": t("A bundle has been written"),
    "answer.done": t("A question has been answered"),
    "answer.evidence_changed": t("The evidence of an answer has changed"),
    "webhook.test": t("A test"),
  };
  return words[event] ?? event;
}

export function Webhooks() {
  const repoID = useRepo();
  const can = useCan();
  const [open, setOpen] = useState<{ what: "edit" | "rotate" | "delete" | "deliveries"; hook: Webhook } | "new" | null>(null);
  const pages = usePages<Webhook>(["webhooks", repoID], (cursor, signal) => ok(api.GET(`${R}/webhooks`, { params: { path: { repoID }, query: { cursor, limit: 50 } }, signal })));
  const stale = [["webhooks", repoID]];
  const path = (hook: Webhook) => ({ repoID, webhookID: hook.id });
  const enable = useAct(({ hook, enabled }: { hook: Webhook; enabled: boolean }) => ok(api.PUT(`${R}/webhooks/{webhookID}`, { params: { path: path(hook) }, body: { enabled } })), {
    stale,
    done: (_, { hook, enabled }) => say(enabled ? t("Switched on") : t("Switched off"), () => enable.mutateAsync({ hook, enabled: !enabled })),
  });
  const test = useAct((hook: Webhook) => ok(api.POST(`${R}/webhooks/{webhookID}/test`, { params: { path: path(hook) } })), { stale: [["deliveries", repoID]], done: (_, hook) => setOpen({ what: "deliveries", hook }) });
  const remove = useAct((hook: Webhook) => ok(api.DELETE(`${R}/webhooks/{webhookID}`, { params: { path: path(hook) } })), { stale, done: () => setOpen(null) });
  const mayMake = can("webhook:write");
  const make = (
    <Button primary onPress={() => setOpen("new")}>
      <Plus aria-hidden /> {t("New webhook")}
    </Button>
  );
  return (
    <div className="stack tight">
      {pages.rows.length > 0 && (
        <div className="row">
          <p className="soft grow">{t("Each address gets a signed request when something happens, with ids and no texts.")}</p>
          {mayMake && make}
        </div>
      )}
      <LongList
        pages={pages}
        id={(one) => one.id}
        label={t("Webhooks")}
        height={92}
        empty={
          <Empty icon={<WebhookIcon aria-hidden />} title={t("No webhooks yet")} action={mayMake ? make : undefined}>
            {t("A program of yours hears what happens here, without asking again and again: a source has been read, a claim stands otherwise.")}
          </Empty>
        }
        row={(hook) => (
          <article className="item">
            <div className="row nowrap">
              <p className="grow break">
                <strong>{hook.url}</strong>
              </p>
              <Menu label={t("More for {title}", { title: hook.description || hook.url })}>
                <MenuItem onAction={() => setOpen({ what: "deliveries", hook })}>{t("Deliveries")}</MenuItem>
                {can("webhook:execute") && <MenuItem onAction={() => test.mutate(hook)}>{t("Send a test")}</MenuItem>}
                {can("webhook:update") && <MenuItem onAction={() => setOpen({ what: "edit", hook })}>{t("Change …")}</MenuItem>}
                {can("webhook:update") && <MenuItem onAction={() => setOpen({ what: "rotate", hook })}>{t("New secret …")}</MenuItem>}
                {can("webhook:update") && <MenuItem onAction={() => enable.mutate({ hook, enabled: !hook.enabled })}>{hook.enabled ? t("Switch off") : t("Switch on")}</MenuItem>}
                {can("webhook:delete") && (
                  <MenuItem danger onAction={() => setOpen({ what: "delete", hook })}>
                    {t("Delete …")}
                  </MenuItem>
                )}
              </Menu>
            </div>
            {hook.description && <p className="break">{hook.description}</p>}
            <div className="item-more">
              {hook.enabled ? (
                hook.failing_since ? (
                  <Badge tone="warn" icon={<TriangleAlert {...NEAR} />}>
                    {t("deliveries fail")}
                  </Badge>
                ) : (
                  <Badge tone="good" icon={<CircleCheck {...NEAR} />}>
                    {t("on")}
                  </Badge>
                )
              ) : (
                <Badge tone={hook.disabled?.code === "person" ? "plain" : "wrong"} icon={<CircleX {...NEAR} />}>
                  {t("off")}
                </Badge>
              )}
              {hook.failing_since && (
                <span>
                  {t("since")} <When at={hook.failing_since} />
                </span>
              )}
              <span>{hook.events.map(eventWord).join(" · ")}</span>
            </div>
            {hook.disabled && hook.disabled.code !== "person" && <p className="small source-failure">{hook.disabled.message}</p>}
            {hook.previous_secret_expires_at && <p className="small soft">{t("The secret before also signs until {time}.", { time: exactly(hook.previous_secret_expires_at) })}</p>}
          </article>
        )}
      />
      {open === "new" && <EditWebhook hook={null} onClose={() => setOpen(null)} />}
      {open !== null && open !== "new" && open.what === "edit" && <EditWebhook hook={open.hook} onClose={() => setOpen(null)} />}
      {open !== null && open !== "new" && open.what === "rotate" && <Rotate hook={open.hook} onClose={() => setOpen(null)} />}
      {open !== null && open !== "new" && open.what === "deliveries" && <Deliveries hook={open.hook} tested={test.data && test.variables?.id === open.hook.id ? test.data.delivery_id : undefined} onTest={() => test.mutate(open.hook)} testing={test.isPending} onClose={() => setOpen(null)} />}
      {open !== null && open !== "new" && open.what === "delete" && (
        <Confirm title={t("Delete this webhook?")} open onClose={() => setOpen(null)} onConfirm={() => remove.mutate(open.hook)} action={t("Delete")} busy={remove.isPending}>
          <p className="break">
            <strong>{open.hook.url}</strong>
          </p>
          <p>{t("With its deliveries. What waits is not delivered any more.")}</p>
        </Confirm>
      )}
    </div>
  );
}

function EditWebhook({ hook, onClose }: { hook: Webhook | null; onClose: () => void }) {
  const repoID = useRepo();
  const [given, setGiven] = useState({ url: hook?.url ?? "", description: hook?.description ?? "" });
  const [events, setEvents] = useState<ReadonlySet<WebhookEvent>>(new Set(hook?.events ?? EVENTS));
  const known = [...new Set([...EVENTS, ...(hook?.events ?? [])])];
  const [secret, setSecret] = useState<string | null>(null);
  const act = useAct(
    async () => {
      const body = { url: given.url.trim(), description: given.description.trim(), events: [...events] };
      if (hook) return void (await ok(api.PUT(`${R}/webhooks/{webhookID}`, { params: { path: { repoID, webhookID: hook.id } }, body })));
      setSecret((await ok(api.POST(`${R}/webhooks`, { params: { path: { repoID } }, body }))).secret);
    },
    { stale: [["webhooks", repoID]], quiet: true, done: () => hook && onClose() },
  );
  const error = act.error instanceof ApiError ? act.error : null;
  const toggle = (event: WebhookEvent, on: boolean) => {
    const next = new Set(events);
    if (on) next.add(event);
    else next.delete(event);
    setEvents(next);
  };
  return (
    <Dialog title={hook ? t("Change a webhook") : t("New webhook")} open onClose={onClose}>
      {secret !== null ? (
        <div className="stack">
          <p>{t("Each request is signed with this secret, so that the receiver knows where it comes from.")}</p>
          <Secret label={t("Secret")} value={secret} />
          <div className="row dialog-buttons">
            <Button primary onPress={onClose}>
              {t("Done")}
            </Button>
          </div>
        </div>
      ) : (
        <Form onSubmit={() => act.mutate(undefined)} error={act.error}>
          <Field label={t("Address")} type="url" autoFocus placeholder="https://" value={given.url} onChange={(url) => setGiven({ ...given, url })} error={error?.field("url")} />
          <Field label={t("Description")} value={given.description} onChange={(description) => setGiven({ ...given, description })} error={error?.field("description")} />
          <fieldset className="plain-fields">
            <legend>{t("What it hears of")}</legend>
            {known.map((event) => (
              <Checkbox key={event} checked={events.has(event)} onChange={(on) => toggle(event, on)}>
                <span>
                  {eventWord(event)} <code className="soft">{event}</code>
                </span>
              </Checkbox>
            ))}
            {error?.field("events") && <p className="field-error">{error.field("events")}</p>}
          </fieldset>
          <div className="row dialog-buttons">
            <Button onPress={onClose}>{t("Cancel")}</Button>
            <Button primary type="submit" busy={act.isPending} isDisabled={given.url.trim() === "" || events.size === 0}>
              {hook ? t("Save") : t("Make the webhook")}
            </Button>
          </div>
        </Form>
      )}
    </Dialog>
  );
}

function Rotate({ hook, onClose }: { hook: Webhook; onClose: () => void }) {
  const repoID = useRepo();
  const act = useAct(() => ok(api.POST(`${R}/webhooks/{webhookID}/rotate`, { params: { path: { repoID, webhookID: hook.id } } })), { stale: [["webhooks", repoID]] });
  return (
    <Dialog title={t("New secret")} open onClose={onClose}>
      {act.data ? (
        <div className="stack">
          <Secret label={t("Secret")} value={act.data.secret} />
          <p>{t("The secret before also signs until {time}.", { time: exactly(act.data.previous_secret_expires_at) })}</p>
          <div className="row dialog-buttons">
            <Button primary onPress={onClose}>
              {t("Done")}
            </Button>
          </div>
        </div>
      ) : (
        <div className="stack">
          <p className="break">
            <strong>{hook.url}</strong>
          </p>
          <p>{t("Requests are signed with the new secret and, for a while, with the one before as well, so that the receiver can change over.")}</p>
          <div className="row dialog-buttons">
            <Button onPress={onClose}>{t("Cancel")}</Button>
            <Button primary onPress={() => act.mutate(undefined)} busy={act.isPending}>
              {t("Make a new secret")}
            </Button>
          </div>
        </div>
      )}
    </Dialog>
  );
}

type State = WebhookDelivery["state"] | "";

function Deliveries({ hook, tested, onTest, testing, onClose }: { hook: Webhook; tested: string | undefined; onTest: () => void; testing: boolean; onClose: () => void }) {
  const repoID = useRepo();
  const can = useCan();
  const [state, setState] = useState<State>("");
  const pages = usePages<WebhookDelivery>(
    ["deliveries", repoID, hook.id, state],
    (cursor, signal) => ok(api.GET(`${R}/webhooks/{webhookID}/deliveries`, { params: { path: { repoID, webhookID: hook.id }, query: { cursor, limit: 50, state: state === "" ? undefined : state } }, signal })),
    { keep: true, refetchInterval: 3_000 },
  );
  return (
    <Dialog title={t("Deliveries")} open onClose={onClose} wide>
      <div className="stack tight">
        <div className="row">
          <p className="grow break soft">{hook.url}</p>
          <Select
            small
            hideLabel
            label={t("State")}
            value={state}
            onChange={setState}
            options={[
              ["", t("All states")],
              ["waiting", t("waiting")],
              ["delivered", t("delivered")],
              ["failed", t("failed")],
            ]}
          />
          {can("webhook:execute") && (
            <Button small onPress={onTest} busy={testing}>
              {t("Send a test")}
            </Button>
          )}
        </div>
        <div className="health">
          <LongList still plain pages={pages} id={(one) => one.id} label={t("Deliveries")} empty={<Empty title={t("Nothing was delivered yet")}>{t("Deliveries are kept for a week, failed ones for a month.")}</Empty>} row={(one) => <Delivery delivery={one} open={one.id === tested} />} />
        </div>
      </div>
    </Dialog>
  );
}

function Delivery({ delivery, open }: { delivery: WebhookDelivery; open: boolean }) {
  const last = delivery.attempts.at(-1);
  const said = (one: NonNullable<typeof last>) => one.error ?? (one.status === null ? t("no answer") : `HTTP ${one.status}`);
  return (
    <div className="item">
      <div className="item-more">
        {delivery.state === "delivered" ? (
          <Badge tone="good" icon={<CircleCheck {...NEAR} />}>
            {t("delivered")}
          </Badge>
        ) : delivery.state === "failed" ? (
          <Badge tone="wrong" icon={<CircleX {...NEAR} />}>
            {t("failed")}
          </Badge>
        ) : (
          <Badge tone="accent" icon={<Clock {...NEAR} />}>
            {t("waiting")}
          </Badge>
        )}
        <strong>{eventWord(delivery.event)}</strong>
        {last && delivery.state !== "delivered" && <span className="break">{said(last)}</span>}
        {delivery.state === "waiting" && delivery.next_attempt_at && (
          <span>
            {t("again")} <When at={delivery.next_attempt_at} />
          </span>
        )}
        <When at={delivery.created_at} />
      </div>
      <details open={open || undefined}>
        <summary className="small">{tn(delivery.attempts.length, "{n} attempt", "{n} attempts")}</summary>
        <ol className="stack tight small">
          {delivery.attempts.map((one) => (
            <li key={one.at} className="break">
              <When at={one.at} /> · {said(one)} · {one.ms} ms
              {one.response && <pre className="prompt">{one.response}</pre>}
            </li>
          ))}
          <li className="soft break">
            <code>webhook-id: {delivery.id}</code> <code>{JSON.stringify(delivery.data)}</code>
          </li>
        </ol>
      </details>
    </div>
  );
}
