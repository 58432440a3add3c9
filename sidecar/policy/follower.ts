import { isDeepStrictEqual } from "node:util";
import type { Logger } from "pino";
import { doubledMs } from "../../core/backoff.ts";
import type { Projection } from "../../edge/projection/contract.ts";
import type { RecordRef } from "../../edge/records.ts";
import { type PolicyInForce, readPolicy } from "./in-force.ts";

/*
 * Holds the policy in force. A new one replaces it as a whole, between two requests. If the new one cannot be read, or is gone,
 * the gate keeps the last one and reports that; it never admits requests without a policy.
 *
 *   nothing held ──found──► held ──found──► held (the new one)
 *        │                  │ ▲ ▲
 *        │ refused     gone │ │ │ found
 *        ▼                  ▼ │ │
 *   nothing held,   held, marked as gone
 *   and why             held, and why a newer one is refused (from held, and back, likewise)
 *
 * A policy of a later release is refused when its format or its terms are unknown to this one, because the gate would not enforce
 * the parts that it does not know. A retry does not help, because another policy will be announced. It is still retried
 * now and then, in case the record was only damaged.
 */

const RETRY = { firstMs: 50, maxMs: 1_000 };
const REFUSED_RETRY_MS = 30_000;
/** A policy that is not there yet may come any moment; after this somebody should know, and again after each of these. */
const MISSED_AFTER_MS = 5_000;
const MISSED_EVERY_MS = 60_000;

/** A stored policy that is newer than the one in force and cannot be enforced. */
export interface PolicyRefusal {
  /** undefined when not even that is readable. */
  readonly generation: number | undefined;
  readonly version: number | undefined;
  readonly reason: string;
}

export interface PolicyFollower {
  readonly current: PolicyInForce | undefined;
  /** The policy in force does not exist any more. */
  readonly isGone: boolean;
  readonly refused: PolicyRefusal | undefined;
  /** Called when another policy comes into force, and when one is refused or no longer is. */
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
  let current: PolicyInForce | undefined;
  let refused: PolicyRefusal | undefined;
  let isGone = false;
  let isClosed = false;
  let isReading = false;
  /** A change arrived during a read, which may have read the older state. */
  let readAgain = false;
  let retryMs = 0;
  let retry: NodeJS.Timeout | undefined;
  let missedMs = performance.now() + missedAfterMs;

  const tell = () => {
    for (const listener of listeners) listener();
  };

  /** Without a policy nothing passes, and a gate that only waits looks well. */
  function miss(reason: string): Outcome {
    const nowMs = performance.now();
    if (current === undefined && nowMs >= missedMs) {
      missedMs = nowMs + MISSED_EVERY_MS;
      logger.warn({ policyId, workspaceId, reason }, "there is no policy yet; requests are answered 503");
    }
    return "retry";
  }

  /** Logged and reported once per refused policy, however often it is read. */
  function refuse(refusal: PolicyRefusal): Outcome {
    isGone = false;
    const isKnown = refused?.version === refusal.version && refused?.reason === refusal.reason;
    refused = refusal;
    if (isKnown) return "refused";
    const inForce = current === undefined ? "no policy is in force" : "the last one stays in force";
    const details = { policyId, ...refusal, versionInForce: current?.record.version };
    logger.error(details, `the policy cannot be enforced by this release of the sidecar; ${inForce}`);
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
      if (current !== undefined && !isGone) {
        isGone = true;
        logger.warn(
          { policyId, version: current.record.version },
          "the policy is gone; its last version stays in force",
        );
      }
      // The change stream will announce a new one. If none was ever seen, there may be no such announcement, so retry.
      return current === undefined ? miss("the workspace has no policy of this name or id") : "done";
    }
    const record = lookup.value;
    const { generation, version } = record;
    // Not by its version alone: a Postgres that was restored gives the versions of the lost history once more.
    if (current !== undefined && isDeepStrictEqual(current.record, record)) {
      isGone = false;
      accept();
      return "done";
    }
    const read = readPolicy(record);
    if ("problem" in read) return refuse({ generation, version, reason: read.problem });
    current = read;
    isGone = false;
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
        logger.error({ err: error, policyId }, "the policy cannot be read; the last one stays in force");
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
    get isGone() {
      return isGone;
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
