import type { Answer, AskEntry, FaultEntry, GrantEntry } from "../journal.ts";
import { CREDITS } from "../load/keys.ts";
import type { Case, Violation } from "./checker.ts";
import { losses, spellsOf, touches } from "./faults.ts";

/** Spent credits are written to Postgres at least once a second; this allows twice that, and the time of the write. */
const WRITE_BEHIND_MS = 3_000;
/** After a store is back, the writes must catch up. */
const MEND_MS = 5_000;

/**
 * Credits whose spending was acknowledged never exceed those granted. When Redis is lost, so is what was spent since the last
 * write: that much more may be spent. The rest at the end agrees with what was spent, and no request was refused for lack of credits
 * while there were some.
 */
export function checkCredits({ recorded, final }: Case): Violation[] {
  const keys = new Set(recorded.asks.filter(({ keyKind }) => keyKind === "credited").map(({ key }) => key));
  return [...keys].flatMap((key): Violation[] => {
    const asks = recorded.asks.filter((ask) => ask.key === key && ask.cost > 0);
    const grants = recorded.grants.filter((grant) => grant.key === key);
    const left = final.credits.get(key);
    const sums = sumsOf({ asks, grants, faults: recorded.faults });
    const violation = (what: string): Violation => {
      return { judge: "credits", what: `${key}: ${what}`, atMs: 0, evidence: { key, left, ...sums } };
    };
    const { grantedMin, grantedMax, spent, maybeSpent, forgotten } = sums;
    if (spent > grantedMax + forgotten) return [violation(`${spent} credits spent of ${grantedMax}`)];
    if (left === undefined) return [violation("nothing says how many are left")];
    if (left > grantedMax - spent + forgotten) return [violation(`${left} left, although ${spent} were spent`)];
    if (left < grantedMin - spent - maybeSpent) return [violation(`${left} left, although only ${spent} were spent`)];
    const withheld = asks.find(
      (ask) => ask.response === "exhausted" && remainingAtLeast({ asks, grants }, ask) >= ask.cost,
    );
    return withheld === undefined ? [] : [violation(`told that none are left at ${withheld.sentMs}`)];
  });
}

/** The credits that were left when the reply came, if everything that may have been spent by then was. */
function remainingAtLeast(
  of: { asks: readonly AskEntry[]; grants: readonly GrantEntry[] },
  { sentMs, answeredMs }: AskEntry,
): number {
  const granted = of.grants.filter((grant) => grant.outcome === "acknowledged" && grant.answeredMs < sentMs);
  const spent = of.asks.filter((ask) => MAY_HAVE_SPENT.has(ask.response) && ask.sentMs <= answeredMs);
  return CREDITS + add(granted.map(({ credits }) => credits)) - add(spent.map(({ cost }) => cost));
}

const MAY_HAVE_SPENT: ReadonlySet<Answer> = new Set(["valid", "none", "unavailable"]);

const add = (list: readonly number[]): number => list.reduce((sum, each) => sum + each, 0);

export interface CreditSums {
  readonly grantedMin: number;
  /** Including the grants without a reply. */
  readonly grantedMax: number;
  /** By requests that were answered. */
  readonly spent: number;
  /** By requests without a reply, or whose reply says that the key cannot be decided. */
  readonly maybeSpent: number;
  /** What losses of Redis may have lost. */
  readonly forgotten: number;
}

function sumsOf(of: {
  asks: readonly AskEntry[];
  grants: readonly GrantEntry[];
  faults: readonly FaultEntry[];
}): CreditSums {
  const granted = (outcomes: readonly string[]) =>
    CREDITS + add(of.grants.filter(({ outcome }) => outcomes.includes(outcome)).map(({ credits }) => credits));
  const spentBy = (asks: readonly AskEntry[]) => add(asks.map(({ cost }) => cost));
  const isSpent = ({ response }: AskEntry) => response === "valid";
  const maybe = of.asks.filter(({ response }) => response === "none" || response === "unavailable");
  const lost = losses(of.faults).map((loss) => ({ fromMs: lastWritten(loss, of.faults), toMs: loss.endedMs }));
  const forgotten = of.asks.filter((ask) => isSpent(ask) && touches(lost, ask.sentMs, ask.answeredMs));
  return {
    grantedMin: granted(["acknowledged"]),
    grantedMax: granted(["acknowledged", "unknown"]),
    spent: spentBy(of.asks.filter(isSpent)),
    maybeSpent: spentBy(maybe),
    forgotten: spentBy(forgotten),
  };
}

/** Since when spending may be unwritten: shortly before the loss, or before the faults that led to it. */
function lastWritten(loss: FaultEntry, faults: readonly FaultEntry[]): number {
  const writers = spellsOf(faults, { mendMs: MEND_MS, isMeant: ({ kind }) => !kind.includes("sidecar") });
  const fromMs = loss.startedMs - WRITE_BEHIND_MS;
  const spell = writers.findLast((each) => each.fromMs <= loss.startedMs && each.toMs >= fromMs);
  return Math.min(fromMs, (spell?.fromMs ?? fromMs) - WRITE_BEHIND_MS);
}
