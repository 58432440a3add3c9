import { isDeepStrictEqual } from "node:util";
import type { Logger } from "pino";
import { doubledMs } from "../../core/backoff.ts";
import type { Projection } from "../../edge/projection/contract.ts";
import type { RecordRef } from "../../edge/records.ts";
import { type ActivePolicy, readPolicy } from "./active-policy.ts";

/*
 * Holds the active policy. A new policy replaces the active one as a whole, between two requests. If the new policy cannot be read, or the
 * policy is deleted, the gate keeps the last policy and reports the problem. Without a policy, the gate admits no requests.
 *
 *   none held ──found──► held ──found──► held (the new one)
 *        │                  │ ▲ ▲
 *        │ rejected deleted │ │ │ found
 *        ▼                  ▼ │ │
 *   none held,      held, marked as deleted
 *   and why             held, and why a newer one is rejected (from held, and back, likewise)
 *
 * A policy is rejected if a later version wrote it in a format or with terms that this version does not support, because the gate would not
 * enforce the unsupported parts. The change stream announces the next policy, so reading the policy again helps only if its record was
 * damaged. For this case, the gate reads the policy again periodically.
 */

const RETRY = { firstMs: 50, maxMs: 1_000 };
const REFUSED_RETRY_MS = 30_000;
/** Delay before a missing policy is reported, because the policy may still arrive. Also the interval of further reports. */
const MISSED_AFTER_MS = 5_000;
const MISSED_EVERY_MS = 60_000;

/** A stored policy that is newer than the active one but cannot be enforced. */
export interface PolicyRefusal {
  /** Generation of the policy; `undefined` if it cannot be read either. */
  readonly generation: number | undefined;
  readonly version: number | undefined;
  readonly reason: string;
}

export interface PolicyFollower {
  readonly current: ActivePolicy | undefined;
  /** Whether the active policy has been deleted. */
  readonly isDeleted: boolean;
  readonly refused: PolicyRefusal | undefined;
  /** Registers a listener that is called when the active policy changes, and when the rejection of a policy starts or ends. */
  onChange(listener: () => void): void;
  close(): void;
}

type Outcome = "done" | "retry" | "refused";

export function followPolicy(options: {
  projection: Projection;
  workspaceId: string;
  policyId: string;
  logger: Logger;
  missedAfterMs?: number;
}): PolicyFollower {
  const { projection, workspaceId, policyId, logger, missedAfterMs = MISSED_AFTER_MS } = options;
  const listeners: Array<() => void> = [];
  let current: ActivePolicy | undefined;
  let refused: PolicyRefusal | undefined;
  let isDeleted = false;
  let isClosed = false;
  let isReading = false;
  /** Whether a change arrived during a read. The read may then have returned the older state. */
  let readAgain = false;
  let retryMs = 0;
  let retry: NodeJS.Timeout | undefined;
  let missedMs = performance.now() + missedAfterMs;

  const tell = () => {
    for (const listener of listeners) listener();
  };

  /** Reports that there is no policy: without one, a gate rejects all requests but otherwise appears healthy. */
  function miss(reason: string): Outcome {
    const nowMs = performance.now();
    if (current === undefined && nowMs >= missedMs) {
      missedMs = nowMs + MISSED_EVERY_MS;
      logger.warn({ policyId, workspaceId, reason }, "there is no policy yet; requests get 503");
    }
    return "retry";
  }

  /** Logs and reports each rejected policy once, even if it is read several times. */
  function refuse(refusal: PolicyRefusal): Outcome {
    isDeleted = false;
    const isKnown = refused?.version === refusal.version && refused?.reason === refusal.reason;
    refused = refusal;
    if (isKnown) return "refused";
    const active = current === undefined ? "no policy is in force" : "the last one stays in force";
    const details = { policyId, ...refusal, activeVersion: current?.record.version };
    logger.error(details, `the policy cannot be enforced by this release of the sidecar; ${active}`);
    tell();
    return "refused";
  }

  function accept(): void {
    if (refused === undefined) return;
    refused = undefined;
    tell();
  }

  async function readOnce(): Promise<Outcome> {
    const lookup = await projection.findPolicy(workspaceId, policyId);
    if (isClosed) return "done";
    if (lookup.status === "unusable") {
      if (lookup.isRefused !== true) return miss(lookup.reason);
      return refuse({ generation: undefined, version: undefined, reason: lookup.reason });
    }
    if (lookup.status === "absent") {
      accept();
      if (current !== undefined && !isDeleted) {
        isDeleted = true;
        logger.warn(
          { policyId, version: current.record.version },
          "the policy was deleted; its last version stays active",
        );
      }
      // A new policy is announced in the change stream. If the gate has never read a policy, it may have missed the announcement, so it
      // retries the read.
      return current === undefined ? miss("the workspace has no policy of this name or id") : "done";
    }
    const record = lookup.value;
    const { generation, version } = record;
    // Compares the contents and not only the version, because after a restore from a backup Postgres assigns the lost version numbers
    // again.
    if (current !== undefined && isDeepStrictEqual(current.record, record)) {
      isDeleted = false;
      accept();
      return "done";
    }
    const read = readPolicy(record);
    if ("problem" in read) return refuse({ generation, version, reason: read.problem });
    current = read;
    isDeleted = false;
    refused = undefined;
    logger.info({ policyId, generation, version }, "policy in force");
    tell();
    return "done";
  }

  async function read(): Promise<void> {
    if (isReading) {
      readAgain = true;
      return;
    }
    isReading = true;
    clearTimeout(retry);
    let outcome: Outcome = "done";
    do {
      readAgain = false;
      try {
        outcome = await readOnce();
      } catch (error) {
        logger.error({ err: error, policyId }, "the policy cannot be read; the last one stays active");
        outcome = "retry";
      }
    } while (readAgain && !isClosed);
    isReading = false;
    if (isClosed) return;
    retryMs = outcome === "retry" ? doubledMs(retryMs, RETRY) : 0;
    if (outcome === "done") return;
    retry = setTimeout(() => void read(), outcome === "refused" ? REFUSED_RETRY_MS : retryMs);
  }

  const concerns = (ref: RecordRef | undefined): boolean =>
    ref === undefined || (ref.kind === "policy" && ref.id === policyId && ref.workspaceId === workspaceId);

  projection.onDropped((ref) => {
    if (!isClosed && concerns(ref)) void read();
  });
  void read();

  return {
    get current() {
      return current;
    },
    get isDeleted() {
      return isDeleted;
    },
    get refused() {
      return refused;
    },
    onChange: (listener) => void listeners.push(listener),
    close() {
      isClosed = true;
      clearTimeout(retry);
    },
  };
}
