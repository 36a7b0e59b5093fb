import { beforeEach, expect, test, vi } from "vitest";

const tokenOf = (user: string, n = 0) => `h.${btoa(JSON.stringify({ sub: user, n }))}.s`;
const reload = vi.fn();
/** What the service answers to the requests to come, and which they were. */
let answers: [number, object?][] = [];
let asked: string[] = [];

beforeEach(() => {
  vi.resetModules();
  reload.mockReset();
  [answers, asked] = [[], []];
  // The other tabs are those of the walk.
  Reflect.deleteProperty(globalThis, "BroadcastChannel");
  vi.stubGlobal("document", { baseURI: "http://okt.example/" });
  vi.stubGlobal("location", { reload });
  vi.stubGlobal("fetch", async (address: string) => {
    asked.push(address.split("/").at(-1) as string);
    const [status, body] = answers.shift() ?? [0];
    if (status === 0) throw new TypeError("away");
    return new Response(body && JSON.stringify(body), { status });
  });
});

test("signing out counts when the service has ended the session", async () => {
  const { accept, session, signOut } = await import("./session");
  accept(tokenOf("ada"), 900);
  answers = [[503]];
  expect(await signOut()).toBe(false);
  expect(await signOut()).toBe(false);
  expect(session.state()).toBe("in");
  answers = [[204]];
  expect(await signOut()).toBe(true);
  expect([session.state(), session.token()]).toEqual(["out", null]);
  expect(asked).toEqual(["logout", "logout", "logout"]);
});

test("signing out with a token that is refused takes a new one first", async () => {
  const { accept, session, signOut } = await import("./session");
  accept(tokenOf("ada"), 900);
  answers = [[401], [503]];
  expect(await signOut()).toBe(false);
  answers = [[401], [200, { token: tokenOf("ada", 1), expires_in: 900 }], [204]];
  expect(await signOut()).toBe(true);
  accept(tokenOf("ada"), 900);
  answers = [[401], [401]];
  expect(await signOut()).toBe(true);
  expect(session.state()).toBe("out");
  expect(asked).toEqual(["logout", "refresh", "logout", "refresh", "logout", "logout", "refresh"]);
});

test("another person does not get the page of the one before", async () => {
  const { accept, session, signOut } = await import("./session");
  expect(accept(tokenOf("ada"), 900)).toBe(true);
  expect(accept(tokenOf("ada", 1), 900)).toBe(true);
  answers = [[204]];
  await signOut();
  expect(accept(tokenOf("grace"), 900)).toBe(false);
  expect(reload).toHaveBeenCalledOnce();
  expect([session.state(), session.token()]).toEqual(["out", null]);
});
