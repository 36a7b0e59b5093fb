//! The first account, signing in, and making an account.

import { useMutation, useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useEffect, useState } from "react";
import { ApiError, ok, open } from "../api/client";
import { accept, BASE } from "../api/session";
import { queries } from "../app/queries";
import { useTitle } from "../app/title";
import { Button } from "../parts/button";
import { Field, Form } from "../parts/form";
import { Failure } from "../parts/states";
import { t } from "../words";
import "./sign-in.css";

type Given = { email: string; password: string; name: string; code: string };

export default function SignIn({ again = false }: { again?: boolean }) {
  const setup = useQuery({ queryKey: ["setup"], staleTime: 60_000, queryFn: ({ signal }) => ok(open.GET("/api/v1/setup", { signal })) });
  const invitation = invited();
  const [registering, setRegistering] = useState(invitation !== null);
  const first = !again && setup.data?.needs_admin === true;
  useTitle(first ? t("First account") : registering ? t("New account") : t("Sign in"));
  if (again) return <Credentials />;
  return (
    <main className="door">
      <div className="door-card card">
        <p className="door-brand">
          <img src="./icon.svg" alt="" width="28" height="28" /> okt
        </p>
        {setup.error && !setup.data ? (
          <Failure error={setup.error} retry={() => void setup.refetch()} />
        ) : setup.isPending ? null : first ? (
          <Register first />
        ) : registering ? (
          <Register invitation={invitation} />
        ) : (
          <>
            <h1>{t("Sign in")}</h1>
            <Credentials />
          </>
        )}
        {setup.data && !first && (
          <p className="small soft">
            {registering ? (
              <Button quiet small onPress={() => setRegistering(false)}>
                {t("I have an account")}
              </Button>
            ) : setup.data.registration === "open" || invitation !== null ? (
              <Button quiet small onPress={() => setRegistering(true)}>
                {t("Make an account")}
              </Button>
            ) : setup.data.registration === "invite" ? (
              t("Accounts are made by invitation: ask an administrator of a repository for a link.")
            ) : (
              t("No accounts can be made here. Ask the operator of this installation.")
            )}
          </p>
        )}
      </div>
      {setup.data && <p className="small soft door-foot">okt {setup.data.version}</p>}
    </main>
  );
}

/** Counts down while the service refuses further tries. */
function useSecondsLeft(error: unknown): number {
  const [left, setLeft] = useState(0);
  useEffect(() => {
    setLeft(error instanceof ApiError && error.status === 429 ? (error.retryAfter ?? 0) : 0);
  }, [error]);
  useEffect(() => {
    if (left <= 0) return;
    const timer = setTimeout(() => setLeft(left - 1), 1_000);
    return () => clearTimeout(timer);
  }, [left]);
  return left;
}

function Credentials() {
  const [given, setGiven] = useState({ email: "", password: "" });
  const act = useMutation({
    mutationFn: () => ok(open.POST("/api/v1/auth/login", { body: { ...given, cookie: true } })),
    onSuccess: (signed) => {
      if (accept(signed.token, signed.expires_in)) void queries.invalidateQueries();
    },
  });
  const left = useSecondsLeft(act.error);
  const error = act.error instanceof ApiError ? act.error : null;
  return (
    <Form onSubmit={() => act.mutate()} error={left > 0 ? undefined : act.error} label={t("Sign in")}>
      {left > 0 && (
        <p className="note warn" role="alert">
          {t("Too many tries. The next one is possible in {n} seconds.", { n: left })}
        </p>
      )}
      <Field label={t("E-mail address")} type="email" autoComplete="username" autoFocus value={given.email} onChange={(email) => setGiven({ ...given, email })} error={error?.field("email")} />
      <Field label={t("Password")} type="password" autoComplete="current-password" value={given.password} onChange={(password) => setGiven({ ...given, password })} error={error?.field("password")} />
      <Button primary type="submit" busy={act.isPending} isDisabled={left > 0}>
        {t("Sign in")}
      </Button>
    </Form>
  );
}

function Register({ first = false, invitation = null }: { first?: boolean; invitation?: string | null }) {
  const [given, setGiven] = useState<Given>({ email: "", password: "", name: "", code: "" });
  const [needsCode, setNeedsCode] = useState(false);
  const navigate = useNavigate();
  const act = useMutation({
    mutationFn: () =>
      ok(
        open.POST("/api/v1/auth/register", {
          body: { email: given.email, password: given.password, name: given.name, cookie: true, ...(given.code ? { setup_code: given.code.trim() } : {}), ...(invitation ? { invitation } : {}) },
        }),
      ),
    onSuccess: (signed) => {
      if (first) sessionFlag();
      // It is used up: the account has joined.
      if (accept(signed.token, signed.expires_in) && invitation) void navigate({ to: "/", replace: true });
    },
    onError: (error) => {
      if (error instanceof ApiError && error.code === "setup_code_needed") setNeedsCode(true);
    },
  });
  const error = act.error instanceof ApiError ? act.error : null;
  const set = (part: Partial<Given>) => setGiven({ ...given, ...part });
  return (
    <>
      <h1>{first ? t("Make the first account") : t("Make an account")}</h1>
      {first && <p className="soft">{t("It will administrate this installation.")}</p>}
      {invitation && <p className="soft">{t("You are invited to a repository. With an account you join it; if you have one, sign in.")}</p>}
      <Form onSubmit={() => act.mutate()} error={needsCode && !given.code ? undefined : act.error} label={t("Make an account")}>
        <Field label={t("Name")} autoComplete="name" autoFocus value={given.name} onChange={(name) => set({ name })} error={error?.field("name")} />
        <Field label={t("E-mail address")} type="email" autoComplete="username" value={given.email} onChange={(email) => set({ email })} error={error?.field("email")} />
        <Field label={t("Password")} type="password" autoComplete="new-password" value={given.password} onChange={(password) => set({ password })} error={error?.field("password")} hint={t("At least 8 characters. A sentence is good.")} />
        {needsCode && (
          <Field
            label={t("Setup code")}
            value={given.code}
            onChange={(code) => set({ code })}
            error={error?.field("setup_code")}
            hint={t("You are not on the machine that okt runs on. Its log shows a code, so that no stranger becomes administrator.")}
            autoFocus
          />
        )}
        <Button primary type="submit" busy={act.isPending}>
          {t("Make the account")}
        </Button>
      </Form>
      <p className="small soft">
        <a href={`${BASE}api/docs`}>{t("The API of this installation")}</a>
      </p>
    </>
  );
}

/** The secret of an invitation that somebody has followed. It is behind the #, so that it is in no log. */
export function invited(): string | null {
  return location.pathname === `${new URL(BASE).pathname}join` && location.hash.length > 1 ? location.hash.slice(1) : null;
}

/** The next page welcomes. */
function sessionFlag() {
  try {
    sessionStorage.setItem("okt-welcome", "1");
  } catch {
    // Then it does not.
  }
}
