//! Who works in a repository, and who is invited to it.

import { useQuery } from "@tanstack/react-query";
import { UserPlus } from "lucide-react";
import { useState } from "react";
import { ApiError, api, ok, R, type Schemas } from "../api/client";
import { BASE } from "../api/session";
import { useAct, useCan, usePages, useRepo, useRepository } from "../app/queries";
import { say } from "../app/toasts";
import { useTitle } from "../app/title";
import { Badge, When } from "../parts/badges";
import { Button } from "../parts/button";
import { Field, Form, Select } from "../parts/form";
import { LongList } from "../parts/list";
import { Confirm, Dialog } from "../parts/overlay";
import { Secret } from "../parts/secret";
import { roleNames } from "../parts/roles";
import { Empty } from "../parts/states";
import { day, t } from "../words";

type Role = Schemas["RepositoryRole"];
type Member = Schemas["Member"];
const ROLES = ["viewer", "curator", "editor", "repoadmin"] as const;

const roleHints = (): Record<Role, string> => ({
  viewer: t("Reads everything in the repository."),
  curator: t("Also judges facts, curates concepts, and writes investigations and reports."),
  editor: t("Also adds and deletes sources, cancels jobs and exports."),
  repoadmin: t("Also changes settings and the budget, imports bundles, and decides who is a member."),
});

export default function Members() {
  const repoID = useRepo();
  const { data: repository } = useRepository();
  useTitle(t("Members"), repository?.name);
  const can = useCan();
  const manages = can("member:manage");
  const [inviting, setInviting] = useState(false);
  const [leaving, setLeaving] = useState<Member | null>(null);
  const { data: me } = useQuery({ queryKey: ["me"], staleTime: 300_000, queryFn: ({ signal }) => ok(api.GET("/api/v1/users/me", { signal })) });
  const pages = usePages<Member>(["members", repoID], (cursor, signal) => ok(api.GET(`${R}/members`, { params: { path: { repoID }, query: { cursor, limit: 100 } }, signal })));
  const names = roleNames();
  const stale = [["members", repoID], ["permissions", repoID], ["repositories"]];
  const set = useAct(({ id, role }: { id: string; role: Role; before: Role | undefined }) => ok(api.PUT(`${R}/members`, { params: { path: { repoID } }, body: { user_id: id, role } })), {
    stale,
    done: (_, asked) => say(t("Saved"), asked.before ? () => set.mutateAsync({ id: asked.id, role: asked.before as Role, before: asked.role }) : undefined),
  });
  const remove = useAct((id: string) => ok(api.DELETE(`${R}/members`, { params: { path: { repoID } }, body: { user_id: id } })), { stale, done: () => setLeaving(null) });
  return (
    <div className="page stack wide">
      <header>
        <h1>{t("Members")}</h1>
        {manages && (
          <Button primary onPress={() => setInviting(true)}>
            <UserPlus aria-hidden /> {t("Invite somebody")}
          </Button>
        )}
      </header>
      <LongList
        pages={pages}
        id={(one) => one.user_id}
        label={t("Members")}
        height={66}
        empty={<Empty title={t("Nobody is a member")}>{t("Administrators of the installation can see every repository without being one.")}</Empty>}
        row={(one) => (
          <article className="item">
            <div className="row">
              <p className="grow break">
                <strong>{one.name}</strong> {one.user_id === me?.id && <Badge>{t("you")}</Badge>}
              </p>
              {manages ? (
                <>
                  <Select
                    small
                    hideLabel
                    label={t("Role of {name}", { name: one.name })}
                    value={one.roles[0] ?? "viewer"}
                    onChange={(role) => role !== one.roles[0] && set.mutate({ id: one.user_id, role, before: one.roles[0] })}
                    options={ROLES.map((role) => [role, names[role]] as const)}
                  />
                  <Button small onPress={() => setLeaving(one)} aria-label={t("Remove {name}", { name: one.name })}>
                    {t("Remove")}
                  </Button>
                </>
              ) : (
                one.roles.map((role) => <Badge key={role}>{names[role]}</Badge>)
              )}
            </div>
            <div className="item-more">
              <span>
                {t("since")} <When at={one.since} />
              </span>
            </div>
          </article>
        )}
      />
      {manages && <Invitations />}
      {inviting && <Invite onClose={() => setInviting(false)} />}
      {leaving && (
        <Confirm title={t("Remove from the repository?")} open onClose={() => setLeaving(null)} onConfirm={() => remove.mutate(leaving.user_id)} action={t("Remove")} busy={remove.isPending}>
          <p className="break">
            <strong>{leaving.name}</strong>
          </p>
          <p>{leaving.user_id === me?.id ? t("You would not see this repository any more.") : t("What this person added stays. To come back they need a new invitation.")}</p>
        </Confirm>
      )}
    </div>
  );
}

function Invitations() {
  const repoID = useRepo();
  const names = roleNames();
  const pages = usePages<Schemas["Invitation"]>(["invitations", repoID], (cursor, signal) => ok(api.GET(`${R}/invitations`, { params: { path: { repoID }, query: { cursor, limit: 100 } }, signal })));
  const withdraw = useAct((id: string) => ok(api.DELETE(`${R}/invitations/{invitationID}`, { params: { path: { repoID, invitationID: id } } })), { stale: [["invitations", repoID]], done: () => say(t("Withdrawn")) });
  return (
    <section className="stack tight" aria-label={t("Invited")}>
      <h2>{t("Invited")}</h2>
      <LongList
        pages={pages}
        id={(one) => one.id}
        label={t("Invited")}
        empty={<p className="soft">{t("Nobody is invited who has not come yet.")}</p>}
        row={(one) => (
          <article className="item">
            <div className="row">
              <p className="grow break">{one.email}</p>
              <Button small onPress={() => withdraw.mutate(one.id)} aria-label={t("Withdraw the invitation of {name}", { name: one.email })}>
                {t("Withdraw")}
              </Button>
            </div>
            <div className="item-more">
              <Badge>{names[one.role as Role] ?? one.role}</Badge>
              <span>{t("until {day}", { day: day(one.expires_at) })}</span>
            </div>
          </article>
        )}
      />
    </section>
  );
}

function Invite({ onClose }: { onClose: () => void }) {
  const repoID = useRepo();
  const names = roleNames();
  const [given, setGiven] = useState<{ email: string; role: Role }>({ email: "", role: "viewer" });
  const act = useAct(() => ok(api.POST(`${R}/invitations`, { params: { path: { repoID } }, body: given })), { stale: [["invitations", repoID]], quiet: true });
  const error = act.error instanceof ApiError ? act.error : null;
  return (
    <Dialog title={t("Invite somebody")} open onClose={onClose}>
      {act.data ? (
        <div className="stack">
          <p>{t("Give this link to {name}. It can be used once, within seven days. No mail is sent.", { name: act.data.email })}</p>
          <Secret label={t("Link")} value={`${BASE}join#${act.data.secret}`} />
          <div className="row dialog-buttons">
            <Button primary onPress={onClose}>
              {t("Done")}
            </Button>
          </div>
        </div>
      ) : (
        <Form onSubmit={() => act.mutate(undefined)} error={act.error}>
          <Field label={t("E-mail address")} type="email" autoFocus value={given.email} onChange={(email) => setGiven({ ...given, email })} error={error?.field("email")} hint={t("Only for your list: no account is looked up by it.")} />
          <Select label={t("Role")} value={given.role} onChange={(role) => setGiven({ ...given, role })} options={ROLES.map((role) => [role, names[role]] as const)} />
          <p className="soft small">{roleHints()[given.role]}</p>
          <div className="row dialog-buttons">
            <Button onPress={onClose}>{t("Cancel")}</Button>
            <Button primary type="submit" busy={act.isPending}>
              {t("Make a link")}
            </Button>
          </div>
        </Form>
      )}
    </Dialog>
  );
}
