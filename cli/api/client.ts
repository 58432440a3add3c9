import { setTimeout as sleep } from "node:timers/promises";
import type { Data, Input, Procedure } from "../../core/api/procedures.ts";
import { backoffMs } from "../../core/backoff.ts";
import { parseJson } from "../parse-json.ts";
import { type Answered, NoResponse, openExchanges } from "./exchange.ts";
import { ApiRefusal, type Called, notOurs, refusalOf, unreachable } from "./refusals.ts";

/* The v2 API as a person at a terminal calls it: one call at a time, each with a deadline, and with an error that says what to do. */

export interface Connection {
  readonly url: string;
  readonly rootKey: string;
  /** For errors: `profile shop`, `POSTERN_ROOT_KEY`. */
  readonly rootKeyFrom: string;
  /** PEM of the authorities of the server's certificate. */
  readonly ca?: string | undefined;
  /** Of a call with its repetitions. */
  readonly timeoutMs: number;
}

export interface ApiResponse<T> {
  readonly data: T;
  /** The cursor of the next page of a list, if there is one. */
  readonly next: string | undefined;
}

export interface Api {
  /** Throws `ApiRefusal` when the API does not do it, and an error that names the address when it does not answer. */
  call<P extends Procedure>(procedure: P, body: Input<P>): Promise<ApiResponse<Data<P>>>;
}

/**
 * The calls that may be sent again when it is not known whether the first one was done: they read, or say what is to be. What makes
 * something, spends something or would find its object gone is sent once.
 */
const REPEATABLE: ReadonlySet<Procedure> = new Set<Procedure>([
  "admin.explainRequest",
  "apis.listKeys",
  "identities.getIdentity",
  "identities.listIdentities",
  "identities.updateIdentity",
  "keys.explainVerification",
  "keys.getKey",
  // Keys that are there already stay as they are.
  "keys.migrateKeys",
  "keys.updateKey",
  "permissions.getRole",
  "permissions.listRoles",
  "permissions.setRolePermissions",
  "permissions.updateRole",
  "policies.listPolicies",
  "ratelimit.getOverride",
  "ratelimit.listOverrides",
  "ratelimit.setOverride",
  "workspaces.getWorkspace",
]);

const ATTEMPTS_MAX = 4;
const GROWTH = { firstMs: 200, maxMs: 3_000 };
/** The address is wrong or the certificate is: a second try meets the same. */
const LASTING = /^(ENOTFOUND|EPROTO|TOO_LARGE|CERT_.*|HPE_.*|ERR_TLS_.*|DEPTH_.*|SELF_.*|UNABLE_.*)$/;

/** A client that is to be closed. */
export function createApi(connection: Connection): Api & { close(): void } {
  const { url, rootKey, rootKeyFrom, ca, timeoutMs } = connection;
  const exchanges = openExchanges({ url, ca });
  const headers = {
    authorization: `Bearer ${rootKey}`,
    "content-type": "application/json",
    accept: "application/json",
    "user-agent": "postern-cli",
  };

  return {
    close: exchanges.close,
    async call<P extends Procedure>(procedure: P, body: Input<P>): Promise<ApiResponse<Data<P>>> {
      const isOnce = !REPEATABLE.has(procedure);
      const called: Called = { procedure, url, rootKeyFrom, isOnce };
      const text = JSON.stringify(body);
      const startedMs = performance.now();
      const remainingMs = () => Math.max(1, Math.ceil(timeoutMs - (performance.now() - startedMs)));
      for (let attempt = 1; ; attempt++) {
        const outcome = await exchanges
          .post(`/v2/${procedure}`, { body: text, headers, timeoutMs: remainingMs() })
          .catch((error: unknown) => {
            if (error instanceof NoResponse) return error;
            throw error;
          });
        const waitMs = backoffMs(attempt, { ...GROWTH, random: Math.random });
        const delayMs = delayOf(outcome, { isOnce, waitMs });
        const mayRepeat = delayMs !== undefined && attempt < ATTEMPTS_MAX && delayMs < remainingMs();
        if (mayRepeat) await sleep(delayMs);
        else if (outcome instanceof NoResponse) {
          throw new Error(unreachable(outcome, called, performance.now() - startedMs));
        } else return responseOf<P>(outcome, called);
      }
    },
  };
}

/** How long to wait before the call is sent again; undefined when it must not be, or that would not help. */
function delayOf(
  outcome: Answered | NoResponse,
  { isOnce, waitMs }: { isOnce: boolean; waitMs: number },
): number | undefined {
  if (outcome instanceof NoResponse) {
    const { code, maybeDone } = outcome;
    return LASTING.test(code) || code === "TIMEOUT" || (maybeDone && isOnce) ? undefined : waitMs;
  }
  // A call beyond the quota was not begun.
  if (outcome.status === 429) return outcome.retryAfterMs ?? waitMs;
  return [502, 503, 504].includes(outcome.status) && !isOnce ? (outcome.retryAfterMs ?? waitMs) : undefined;
}

function responseOf<P extends Procedure>(answered: Answered, called: Called): ApiResponse<Data<P>> {
  const { status } = answered;
  const body = parseJson(answered.text) as { data?: Data<P>; pagination?: { cursor?: string } } | undefined;
  if (status !== 200 && status !== 202) throw refusalOf(answered, body, called);
  if (typeof body !== "object" || body === null || body.data === undefined) {
    throw new ApiRefusal(notOurs(answered, called), { status, kind: "" });
  }
  return { data: body.data, next: body.pagination?.cursor };
}
