import { setTimeout as sleep } from "node:timers/promises";
import type { Data, Input, Procedure } from "../../core/api/procedures.ts";
import { mayRetry } from "../../core/api/retry.ts";
import { backoffMs } from "../../core/backoff.ts";
import { parseJson } from "../parse-json.ts";
import { type Answered, NoResponse, openExchanges } from "./exchange.ts";
import { ApiRefusal, type Called, notOurs, refusalOf, unreachable } from "./refusals.ts";

/* Client of the v2 API for commands: one call at a time, with a deadline, and with errors that name the next action. */

export interface Connection {
  readonly url: string;
  readonly rootKey: string;
  /** Source of the root key, for error messages, such as `profile shop` or `POSTERN_ROOT_KEY`. */
  readonly rootKeyFrom: string;
  /** CA bundle (PEM) for the server's certificate. */
  readonly ca?: string | undefined;
  /** Maximum time of a call, including retries. */
  readonly timeoutMs: number;
}

export interface ApiResponse<T> {
  readonly data: T;
  /** Cursor of the next page of a list; `undefined` on the last page. */
  readonly next: string | undefined;
}

export interface Api {
  /** Calls a procedure. Throws `ApiRefusal` for an error response, and an error that names the server's address if no response arrives. */
  call<P extends Procedure>(procedure: P, body: Input<P>): Promise<ApiResponse<Data<P>>>;
}

/**
 * Idempotent procedures, which are retried even if the first attempt may have succeeded. Calls that create, delete or spend are sent once.
 */
const REPEATABLE: ReadonlySet<Procedure> = new Set<Procedure>([
  "admin.explainRequest",
  "admin.getUsage",
  "admin.listApis",
  "admin.listAudit",
  "admin.listNamespaces",
  "admin.listRootKeys",
  "admin.updateRootKey",
  "apis.listKeys",
  "identities.getIdentity",
  "identities.listIdentities",
  "identities.updateIdentity",
  "keys.explainVerification",
  "keys.getKey",
  // `keys.migrateKeys` keeps existing keys unchanged, so a retry is safe.
  "keys.migrateKeys",
  "keys.updateKey",
  "managed.applyObject",
  "managed.deleteObject",
  "managed.listDigests",
  "permissions.getRole",
  "permissions.listRoles",
  "permissions.setRolePermissions",
  "permissions.updateRole",
  "policies.listPolicies",
  "policies.listStatus",
  "ratelimit.getOverride",
  "ratelimit.listOverrides",
  "ratelimit.setOverride",
  "workspaces.getWorkspace",
]);

const ATTEMPTS_MAX = 4;
const GROWTH = { firstMs: 200, maxMs: 3_000 };
/** Errors caused by the address or the certificate. A retry does not fix them. */
const LASTING = /^(ENOTFOUND|EPROTO|TOO_LARGE|CERT_.*|HPE_.*|ERR_TLS_.*|DEPTH_.*|SELF_.*|UNABLE_.*)$/;

/** Returns a client. The caller closes it. */
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

/** Returns the delay before a retry; `undefined` if the call must not be retried or a retry cannot help. */
function delayOf(
  outcome: Answered | NoResponse,
  { isOnce, waitMs }: { isOnce: boolean; waitMs: number },
): number | undefined {
  if (outcome instanceof NoResponse) {
    const { code, maybeDone } = outcome;
    return LASTING.test(code) || code === "TIMEOUT" || (maybeDone && isOnce) ? undefined : waitMs;
  }
  if (!mayRetry(outcome.status, { isRepeatable: !isOnce })) return undefined;
  return outcome.retryAfterMs ?? waitMs;
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
