import type { Logger } from "pino";
import type { Projection, RecordRef } from "../edge/projection/contract.ts";
import { compileInForce, type PolicyInForce } from "./policy-in-force.ts";

/*
 * Holds the policy in force. A new one replaces it whole, between two requests. One that cannot be read, or is gone,
 * replaces nothing: the gate keeps the last, says so, and never opens.
 *
 *   nothing held ──found──► held ──found──► held (the new one)
 *                            │ ▲
 *                       gone │ │ found
 *                            ▼ │
 *                       held, marked as gone
 */

const RETRY_FIRST_MS = 50;
const RETRY_MAX_MS = 1_000;

export interface PolicyFollower {
  readonly current: PolicyInForce | undefined;
  /** The policy in force does not exist any more. */
  readonly isGone: boolean;
  onChange(listener: (inForce: PolicyInForce) => void): void;
  close(): void;
}

export function followPolicy(options: {
  projection: Projection;
  workspaceId: string;
  policyId: string;
  logger: Logger;
}): PolicyFollower {
  const { projection, workspaceId, policyId, logger } = options;
  const listeners: Array<(inForce: PolicyInForce) => void> = [];
  let current: PolicyInForce | undefined;
  let isGone = false;
  let isClosed = false;
  let isReading = false;
  /** A change came while a read was under way, which may have seen what was before it. */
  let readAgain = false;
  let retryMs = RETRY_FIRST_MS;
  let retry: NodeJS.Timeout | undefined;

  async function readOnce(): Promise<"settled" | "retry"> {
    const lookup = await projection.findPolicy(workspaceId, policyId);
    if (isClosed) return "settled";
    if (lookup.status === "unusable") return "retry";
    if (lookup.status === "absent") {
      if (current !== undefined && !isGone) {
        isGone = true;
        logger.warn(
          { policyId, version: current.record.version },
          "the policy is gone; its last version stays in force",
        );
      }
      // The change stream tells of a new one; with none ever seen, there may be no word of it that would be new.
      return current === undefined ? "retry" : "settled";
    }
    const record = lookup.value;
    isGone = false;
    if (current !== undefined && current.record.version === record.version && current.record.uid === record.uid) {
      return "settled";
    }
    current = compileInForce(record);
    logger.info({ policyId, generation: record.generation, version: record.version }, "policy in force");
    for (const listener of listeners) listener(current);
    return "settled";
  }

  async function read(): Promise<void> {
    if (isReading) {
      readAgain = true;
      return;
    }
    isReading = true;
    clearTimeout(retry);
    let outcome: "settled" | "retry" = "settled";
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
    if (outcome === "settled") {
      retryMs = RETRY_FIRST_MS;
      return;
    }
    retry = setTimeout(() => void read(), retryMs);
    retryMs = Math.min(RETRY_MAX_MS, retryMs * 2);
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
    onChange: (listener) => void listeners.push(listener),
    close() {
      isClosed = true;
      clearTimeout(retry);
    },
  };
}
