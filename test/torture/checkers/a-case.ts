import type { Final, FinalKey } from "../final.ts";
import type { AskEntry, ChangeEntry, FaultEntry, GrantEntry, Recorded, SampleEntry } from "../journal.ts";
import type { Change, KeyState } from "../model.ts";
import { type Case, toCase } from "./checker.ts";

/*
 * Journals made by hand. Times are seconds after a fixed instant, which are easier to read than Unix ms; a call takes 10 ms.
 */

export const T0 = 1_800_000_000_000;
export const at = (seconds: number): number => T0 + seconds * 1000;
const TAKES_MS = 10;

let lastId = 0;

/** A change of `key-1` through `api-1`, acknowledged. */
export function aChange(seconds: number, change: Change, more: Partial<ChangeEntry> = {}): ChangeEntry {
  lastId += 1;
  return {
    ...{
      type: "change",
      subject: "key",
      id: `torture/client-1/${lastId}`,
      workspace: "main",
      key: "key-1",
      change,
      via: "api-1",
    },
    ...{ sentMs: at(seconds), answeredMs: at(seconds) + TAKES_MS, outcome: "acknowledged", status: 200 },
    ...more,
  };
}

export const created = (seconds: number): ChangeEntry => aChange(seconds, { kind: "create", permitted: true });

/** A verification of `key-1` at `sidecar-1`. */
export function anAsk(seconds: number, response: AskEntry["response"], more: Partial<AskEntry> = {}): AskEntry {
  return {
    ...{ type: "ask", workspace: "main", key: "key-1", keyKind: "plain", process: "sidecar-1", incarnation: 1 },
    ...{ needs: "none", cost: 1, sentMs: at(seconds), answeredMs: at(seconds) + TAKES_MS, response },
    ...more,
  };
}

/** The staleness that `sidecar-1` reports. */
export function aSample(seconds: number, stalenessS: number, more: Partial<SampleEntry> = {}): SampleEntry {
  return {
    ...{ type: "sample", process: "sidecar-1", incarnation: 1 },
    ...{ sentMs: at(seconds), answeredMs: at(seconds) + TAKES_MS },
    ...{ stalenessMs: stalenessS * 1000, streamStalenessMs: stalenessS * 1000 },
    ...more,
  };
}

export function anInternalError(
  kind: FaultEntry["kind"],
  fromS: number,
  toS: number,
  more: Partial<FaultEntry> = {},
): FaultEntry {
  return { type: "fault", kind, target: "one", startedMs: at(fromS), endedMs: at(toS), ...more };
}

export function aGrant(seconds: number, credits: number, more: Partial<GrantEntry> = {}): GrantEntry {
  lastId += 1;
  return {
    ...{ type: "grant", id: `torture/client-1/${lastId}`, workspace: "main", key: "key-1", credits, via: "api-1" },
    ...{ sentMs: at(seconds), answeredMs: at(seconds) + TAKES_MS, outcome: "acknowledged", status: 200 },
    ...more,
  };
}

/** The state in Postgres after its creation. */
export const found = (state: Partial<KeyState> = {}): FinalKey => ({
  workspace: "main",
  state: { exists: true, enabled: true, expired: false, permitted: true, note: 0, ...state },
});

export function aCase(
  recorded: Partial<Recorded>,
  { sweep = [], ...final }: Partial<Final> & { sweep?: AskEntry[] } = {},
): Case {
  return toCase({
    recorded: { changes: [], grants: [], asks: [], samples: [], faults: [], ...recorded },
    final: {
      keys: new Map(),
      granting: new Set(),
      audit: [],
      repeatedEvents: [],
      eventCount: 0,
      credits: new Map(),
      ...final,
    },
    sweep,
  });
}
