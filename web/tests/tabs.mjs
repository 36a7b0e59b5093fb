// Tabs of one browser share a session and a stream of events.
import { DESKTOP, base, done, enter, long, newContext, newTab, problems, signIn, until } from "./browser.mjs";

/** Several tabs at once stay signed in, with one refresh and one stream of events for all of them. */
export async function tabs(person, path, rounds, many) {
  const theirs = await newContext(DESKTOP);
  const first = await newTab(theirs, `${many} tabs`);
  await signIn(first, person);
  await enter(first);
  await first.close();
  /** What is read now, and by which tab. */
  const streams = new Map();
  for (let round = 1; round <= rounds; round += 1) {
    let refreshed = 0;
    // One after the other reads while they are closed.
    let closing = false;
    const opened = await Promise.all(Array.from({ length: many }, () => newTab(theirs, `${many} tabs`)));
    for (const one of opened) {
      one.on("request", (request) => {
        if (request.url().endsWith("/auth/refresh")) refreshed += 1;
        if (closing || !request.url().endsWith("/events")) return;
        streams.set(request, one);
        if (streams.size > 1) problems.push(`${many} tabs: ${streams.size} streams of events at once`);
      });
      for (const end of ["requestfinished", "requestfailed"]) one.on(end, (request) => streams.delete(request));
    }
    await Promise.all(opened.map((one) => one.goto(base + path)));
    await Promise.all(opened.map((one) => one.locator("a.item-main").first().waitFor()));
    // A tab that is busy does not answer in time, and another one refreshes after it; all of them would mean that nothing is shared.
    if (refreshed >= many) problems.push(`${many} tabs: ${refreshed} refreshes`);
    await until("a stream of events", () => streams.size > 0);
    if (round === rounds) {
      const [[stream, leader]] = streams;
      streams.delete(stream);
      await leader.close();
      const before = Date.now();
      await until("the next tab that reads events", () => streams.size > 0);
      if (Date.now() - before > (long ? 2_000 : 15_000)) problems.push(`${many} tabs: events were read again after ${Date.now() - before} ms`);
    }
    closing = true;
    await Promise.all(opened.map((one) => one.close()));
    streams.clear();
  }
  await theirs.close();
  done(`${many} tabs stay signed in`);
}
