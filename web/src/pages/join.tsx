//! Follows an invitation.

import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { ApiError, api, ok } from "../api/client";
import { useAct } from "../app/queries";
import { TopShell } from "../app/shell";
import { say } from "../app/toasts";
import { useTitle } from "../app/title";
import { Button, LinkButton } from "../parts/button";
import { Empty, Failure } from "../parts/states";
import { t } from "../words";
import { invited } from "./sign-in";

export default function Join() {
  useTitle(t("Invitation"));
  const navigate = useNavigate();
  const [secret] = useState(invited);
  const act = useAct((given: string) => ok(api.POST("/api/v1/invitations/accept", { body: { secret: given } })), {
    stale: [["repositories"], ["my-permissions"]],
    quiet: true,
    done: (joined) => {
      say(t("You have joined {name}", { name: joined.name }));
      void navigate({ to: "/r/$slug/sources", params: { slug: joined.slug }, replace: true });
    },
  });
  const over = act.error instanceof ApiError && [404, 409, 422].includes(act.error.status);
  return (
    <TopShell>
      <div className="page">
        {!secret ? (
          <Empty whole title={t("This is no invitation")} action={<LinkButton to="/">{t("To your repositories")}</LinkButton>}>
            {t("The part of the link behind the # is missing. Open it once more as it was given to you.")}
          </Empty>
        ) : over ? (
          <Empty whole title={t("This invitation is over")} action={<LinkButton to="/">{t("To your repositories")}</LinkButton>}>
            {t("It was used, withdrawn, or is older than seven days. Ask for another one.")}
          </Empty>
        ) : act.error ? (
          <Failure whole error={act.error} retry={() => act.mutate(secret)} />
        ) : (
          <Empty
            whole
            title={t("You are invited to a repository")}
            action={
              <Button primary onPress={() => act.mutate(secret)} busy={act.isPending}>
                {t("Join")}
              </Button>
            }
          >
            {t("If you do not know who invited you, close this page. Nothing has happened.")}
          </Empty>
        )}
      </div>
    </TopShell>
  );
}
