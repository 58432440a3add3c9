import { ASKS, type Ask, NORMAL, type Row } from "./rows.ts";
import { QUIET_MS, type World } from "./world.ts";

const LASTS_MS = 3_000;
const PAUSE_MS = 40;
/** What api-servers are asked, and not the gate. */
const OF_API: ReadonlySet<Ask> = new Set(["verify", "verifyCredits", "limit", "change"]);

export interface Seen {
  /** How often each status was seen. */
  readonly statuses: Readonly<Record<Ask, ReadonlyMap<number, number>>>;
  /** The same of answers to questions of while it lasted that came when it was over. */
  readonly late: Readonly<Record<Ask, ReadonlyMap<number, number>>>;
  /** What the gate has logged from its begin until it was over. */
  readonly log: string;
  /** Of the gate's answers. */
  readonly slowestMs: number;
  /** From the end of the fault until everything was as always; undefined when it was not in time. */
  readonly normalAfterMs: number | undefined;
  /** What was last not as always after the end of the fault. */
  readonly lastReason: string | undefined;
}

/** Makes the fault of a row, asks everything all the time while it lasts, ends it, and waits until everything is as always. */
export async function measure(world: World, row: Row): Promise<Seen> {
  const [statuses, late] = [byAsk(), byAsk()];
  let isOver = false;
  let slowestMs = 0;
  const logged = world.gateLog().length;
  await row.begin(world);
  const untilMs = performance.now() + LASTS_MS;
  // One asker for each, so that one that waits keeps no other from asking.
  const asker = async (what: Ask): Promise<void> => {
    do {
      const { status, tookMs } = await world.ask(what);
      const seen = (isOver ? late : statuses)[what];
      seen.set(status, (seen.get(status) ?? 0) + 1);
      if (!OF_API.has(what)) slowestMs = Math.max(slowestMs, tookMs);
      await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
    } while (performance.now() < untilMs);
  };
  const asking = Promise.all((Object.keys(ASKS) as Ask[]).map(asker));
  await new Promise((resolve) => setTimeout(resolve, LASTS_MS));
  isOver = true;
  // An api-server or Redis that starts again still takes part in the outage.
  await row.end(world);
  const endedMs = performance.now();
  await asking;
  let lastReason: string | undefined;
  for (let reason = await world.notNormal(); reason !== undefined; reason = await world.notNormal()) {
    lastReason = reason;
    if (performance.now() - endedMs > 2 * row.normalMs) return done(undefined);
    await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
  }
  const normalAfterMs = performance.now() - endedMs;
  // What the next fault finds was asked for after the last announcement.
  await new Promise((resolve) => setTimeout(resolve, QUIET_MS));
  while ((await world.notNormal()) !== undefined) await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
  return done(normalAfterMs);

  function done(normalAfterMs: number | undefined): Seen {
    const log = world.gateLog().slice(logged);
    return { log, statuses, late, slowestMs, normalAfterMs, lastReason };
  }
}

const byAsk = () => {
  const empty = (Object.keys(ASKS) as Ask[]).map((what) => [what, new Map<number, number>()] as const);
  return Object.fromEntries(empty) as Record<Ask, Map<number, number>>;
};

/** Less than this part of the answers counts as rarely. */
const RARELY = 0.1;
/**
 * The counters have 50 ms to answer, and a busy machine takes longer now and then. Limits are then counted in the gate; credits are denied.
 * So some of their answers may be that, as long as others are not.
 */
const COUNTED: ReadonlySet<Ask> = new Set(["credits", "verifyCredits"]);
const DENIED = [503, 500];
const isExcused = (what: Ask, { status, count, all }: SeenStatus): boolean =>
  COUNTED.has(what) && DENIED.includes(status) && count < Math.max(2, all);

interface SeenStatus {
  readonly status: number;
  readonly count: number;
  /** How many answers there were. */
  readonly all: number;
  readonly throttle: boolean;
}

/** The statuses that were seen, the lowest first. */
export function statusesOf(seen: ReadonlyMap<number, number>): SeenStatus[] {
  const counts = [...seen].sort(([a], [b]) => a - b);
  const all = counts.reduce((sum, [, count]) => sum + count, 0);
  return counts.map(([status, count]) => ({ status, count, all, throttle: count < RARELY * all }));
}

/** What was seen and not promised, in words; none when the promise held. */
export function broken(row: Row, seen: Seen): string[] {
  const wrong = (Object.keys(ASKS) as Ask[]).flatMap((what) => {
    const allowed = row.statuses[what] ?? NORMAL[what];
    const not = statusesOf(seen.statuses[what]).filter((one) => !allowed.includes(one.status) && !isExcused(what, one));
    const notLate = statusesOf(seen.late[what]).filter(
      (one) => ![...allowed, ...NORMAL[what]].includes(one.status) && !isExcused(what, one),
    );
    return [...not, ...notLate].map(({ status, count }) => `${ASKS[what]}: ${count} times ${status}`);
  });
  for (const [what, status] of Object.entries(row.seen ?? {})) {
    if (!seen.statuses[what as Ask].has(status)) wrong.push(`${ASKS[what as Ask]}: no ${status} was seen`);
  }
  if (row.told !== undefined && !row.told.test(seen.log)) wrong.push(`the gate's log has nothing like ${row.told}`);
  if (seen.slowestMs > row.slowestMs) wrong.push(`an answer took ${Math.round(seen.slowestMs)} ms`);
  if (seen.normalAfterMs === undefined || seen.normalAfterMs > row.normalMs) {
    wrong.push(`not as always after ${row.normalMs} ms, at last: ${seen.lastReason}`);
  }
  return wrong;
}
