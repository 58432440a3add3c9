import { ASKS, type Ask, NORMAL, type Row } from "./rows.ts";
import { QUIET_MS, type World } from "./world.ts";

const LASTS_MS = 3_000;
const PAUSE_MS = 40;

export interface Seen {
  /** How often each status was seen. */
  readonly statuses: Readonly<Record<Ask, ReadonlyMap<number, number>>>;
  /** Of the gate's answers. */
  readonly slowestMs: number;
  /** From the end of the fault until everything was as always; undefined when it was not in time. */
  readonly normalAfterMs: number | undefined;
}

/** Makes the fault of a row, asks everything all the time while it lasts, ends it, and waits until everything is as always. */
export async function measure(world: World, row: Row): Promise<Seen> {
  const none = (): Map<number, number> => new Map();
  const statuses = { known: none(), limited: none(), credits: none(), unknown: none(), verify: none(), change: none() };
  let slowestMs = 0;
  await row.begin(world);
  const untilMs = performance.now() + LASTS_MS;
  // One asker for each, so that one that waits keeps no other from asking.
  const asker = async (what: Ask): Promise<void> => {
    const seen = statuses[what];
    do {
      const { status, tookMs } = await world.ask(what);
      seen.set(status, (seen.get(status) ?? 0) + 1);
      if (what !== "verify" && what !== "change") slowestMs = Math.max(slowestMs, tookMs);
      await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
    } while (performance.now() < untilMs);
  };
  const asking = Promise.all((Object.keys(ASKS) as Ask[]).map(asker));
  await new Promise((resolve) => setTimeout(resolve, LASTS_MS));
  const endedMs = performance.now();
  await row.end(world);
  await asking;
  while (!(await world.isNormal())) {
    if (performance.now() - endedMs > 2 * row.normalMs) return done(undefined);
    await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
  }
  const normalAfterMs = performance.now() - endedMs;
  // What the next fault finds was asked for after the last announcement.
  await new Promise((resolve) => setTimeout(resolve, QUIET_MS));
  while (!(await world.isNormal())) await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
  return done(normalAfterMs);

  function done(normalAfterMs: number | undefined): Seen {
    return { statuses, slowestMs, normalAfterMs };
  }
}

/**
 * The counters have 50 ms to answer, and a busy machine takes longer now and then. Limits are then counted in the gate; credits are denied,
 * so up to a tenth of their answers may be.
 */
export const RARELY = 0.1;

/** The statuses that were seen, the lowest first; `rarely` tells of each whether it is less than a tenth. */
export function statusesOf(seen: Seen, what: Ask): { readonly status: number; readonly rarely: boolean }[] {
  const counts = [...seen.statuses[what]].sort(([a], [b]) => a - b);
  const all = counts.reduce((sum, [, count]) => sum + count, 0);
  return counts.map(([status, count]) => ({ status, rarely: count < RARELY * all }));
}

/** What was seen and not promised, in words; none when the promise held. */
export function broken(row: Row, seen: Seen): string[] {
  const wrong = (Object.keys(ASKS) as Ask[]).flatMap((what) => {
    const allowed = row.statuses[what] ?? NORMAL[what];
    const not = statusesOf(seen, what).filter(
      ({ status, rarely }) => !allowed.includes(status) && !(rarely && what === "credits"),
    );
    return not.length === 0 ? [] : [`${ASKS[what]}: ${not.map(({ status }) => status).join(", ")}`];
  });
  if (seen.slowestMs > row.slowestMs) wrong.push(`an answer took ${Math.round(seen.slowestMs)} ms`);
  if (seen.normalAfterMs === undefined || seen.normalAfterMs > row.normalMs) {
    wrong.push(`not as always after ${row.normalMs} ms`);
  }
  return wrong;
}
