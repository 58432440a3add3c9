import { once } from "node:events";
import { createWriteStream, type WriteStream } from "node:fs";
import type { Change, KeyKind, Needs, Verdict } from "./model.ts";
import type { FaultKind } from "./plan.ts";

/*
 * All requests and replies. Times are Unix ms of this machine, on which all parts run: `sentMs` is taken before
 * the call and `answeredMs` after it, so the effect happened between the two.
 */

/** The id of all calls before the first fault. */
export const SEED_ID = "torture/seed";

/** A call that changes a key, or a role or permission that grants to many keys. */
export interface ChangeEntry {
  readonly type: "change";
  readonly subject: "key" | "role" | "permission";
  /** Sent as the user agent, which is stored in the audit log. */
  readonly id: string;
  readonly workspace: string;
  /** The name of the key, role or permission. */
  readonly key: string;
  readonly change: Change;
  readonly via: string;
  readonly sentMs: number;
  readonly answeredMs: number;
  /** `unknown`: no reply, or one that reports a failure: the change may have happened, or may still happen. */
  readonly outcome: "acknowledged" | "refused" | "unknown";
  readonly status?: number | undefined;
  readonly requestId?: string | undefined;
}

/** A call that adds to a key's credits. */
export interface GrantEntry extends Omit<ChangeEntry, "type" | "subject" | "change"> {
  readonly type: "grant";
  readonly credits: number;
}

export type Answer =
  | Verdict
  | "limited"
  | "exhausted"
  /** The reply says that the key cannot be decided now. */
  | "unavailable"
  /** No reply. */
  | "none"
  /** A reply that no procedure has. */
  | "odd";

/** A call that verifies a key. */
export interface AskEntry {
  readonly type: "ask";
  readonly workspace: string;
  readonly key: string;
  readonly keyKind: KeyKind;
  readonly process: string;
  /** How often the process had been started. */
  readonly incarnation: number;
  readonly needs: Needs;
  /** The role or permission that may grant it to many keys at once. */
  readonly through?: string | undefined;
  /** Credits that are spent when it is valid. */
  readonly cost: number;
  readonly sentMs: number;
  readonly answeredMs: number;
  readonly response: Answer;
  readonly status?: number | undefined;
  readonly requestId?: string | undefined;
  readonly detail?: string | undefined;
}

/** The staleness that a process reports. */
export interface SampleEntry {
  readonly type: "sample";
  readonly process: string;
  readonly incarnation: number;
  readonly sentMs: number;
  readonly answeredMs: number;
  /** Of its stalest workspace. undefined: it has no data yet. */
  readonly stalenessMs: number | undefined;
  /** Of all workspaces that do not lag behind the others. */
  readonly streamStalenessMs: number | undefined;
  /** Of a sidecar: how often since its start the shared counters could not decide a limit. */
  readonly limitFailures?: number | undefined;
}

export interface FaultEntry {
  readonly type: "fault";
  /** A stall is of the machine: this process was not scheduled for a while. */
  readonly kind: FaultKind | "stall";
  /** The part's name. */
  readonly target: string;
  readonly startedMs: number;
  readonly endedMs: number;
  /** Why the fault was skipped: its part was down already. */
  readonly skipped?: string | undefined;
}

export type Entry = ChangeEntry | GrantEntry | AskEntry | SampleEntry | FaultEntry;

/** What the judges evaluate. */
export interface Recorded {
  readonly changes: readonly ChangeEntry[];
  readonly grants: readonly GrantEntry[];
  readonly asks: readonly AskEntry[];
  readonly samples: readonly SampleEntry[];
  readonly faults: readonly FaultEntry[];
}

/** Collects entries for the judges, and writes each as a line of JSON. */
export class Journal implements Recorded {
  readonly changes: ChangeEntry[] = [];
  readonly grants: GrantEntry[] = [];
  readonly asks: AskEntry[] = [];
  readonly samples: SampleEntry[] = [];
  readonly faults: FaultEntry[] = [];
  readonly #file: WriteStream;

  constructor(file: string) {
    this.#file = createWriteStream(file);
  }

  add(entry: Entry): void {
    switch (entry.type) {
      case "change":
        this.changes.push(entry);
        break;
      case "grant":
        this.grants.push(entry);
        break;
      case "ask":
        this.asks.push(entry);
        break;
      case "sample":
        this.samples.push(entry);
        break;
      case "fault":
        this.faults.push(entry);
        break;
    }
    this.#file.write(`${JSON.stringify(entry)}\n`);
  }

  async close(): Promise<void> {
    this.#file.end();
    if (!this.#file.closed) await once(this.#file, "close");
  }
}
