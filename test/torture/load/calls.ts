import type { Answer, AskEntry } from "../journal.ts";
import type { Part } from "../world/part.ts";
import type { Workspace } from "../world/world.ts";
import { type Http, type Result, readJson } from "./http.ts";
import { type LoadKey, PERMISSION, permissionKey, roleKey } from "./keys.ts";

/*
 * The calls of the load, and how their replies are interpreted.
 */

/** Longer than a healthy reply takes, shorter than a process is stopped. */
const CHANGE_TIMEOUT_MS = 8_000;
const ASK_TIMEOUT_MS = 5_000;

export interface ProcedureCall {
  readonly part: Part;
  readonly workspace: Workspace;
  readonly procedure: string;
  readonly body: unknown;
  /** The user agent, which is stored in the audit log. */
  readonly id: string;
  readonly timeoutMs?: number;
}

export function callProcedure(http: Http, call: ProcedureCall): Promise<Result> {
  return http.send({
    method: "POST",
    url: `${call.part.url}/v2/${call.procedure}`,
    headers: {
      authorization: `Bearer ${call.workspace.rootKey}`,
      "content-type": "application/json",
      "user-agent": call.id,
    },
    body: JSON.stringify(call.body),
    timeoutMs: call.timeoutMs ?? CHANGE_TIMEOUT_MS,
  });
}

interface Body {
  readonly data?: { readonly code?: string };
  readonly meta?: { readonly requestId?: string };
  readonly error?: { readonly type?: string; readonly detail?: string };
}

/** The outcome of a change. After `service_unavailable` it may have happened: the reply of the commit may have been lost. */
export function outcomeOf(result: Result): {
  outcome: "acknowledged" | "refused" | "unknown" | "unsent";
  status?: number;
  requestId?: string | undefined;
} {
  if (result.kind === "unsent") return { outcome: "unsent" };
  if (result.kind !== "answered") return { outcome: "unknown" };
  const { status, text } = result;
  const requestId = readJson<Body>(text)?.meta?.requestId;
  const outcome = status === 200 ? "acknowledged" : status < 500 && status !== 408 ? "refused" : "unknown";
  return { outcome, status, requestId };
}

const ANSWERS: Readonly<Record<string, Answer>> = {
  VALID: "valid",
  NOT_FOUND: "refused",
  DISABLED: "refused",
  EXPIRED: "refused",
  INSUFFICIENT_PERMISSIONS: "forbidden",
  RATE_LIMITED: "limited",
  USAGE_EXCEEDED: "exhausted",
};

const KINDS: Readonly<Record<string, Answer>> = {
  unauthorized: "refused",
  forbidden: "forbidden",
  rate_limited: "limited",
  usage_exceeded: "exhausted",
  verification_unavailable: "unavailable",
  upstream_unreachable: "unavailable",
  upstream_timeout: "unavailable",
};

type Read = Pick<AskEntry, "response" | "status" | "requestId" | "detail">;

/** What an api-server returns for a key. */
export function readVerification(result: Result): Read {
  if (result.kind !== "answered") return { response: "none", detail: result.why };
  const { status } = result;
  const body = readJson<Body>(result.text);
  const requestId = body?.meta?.requestId;
  if (status === 200)
    return { response: ANSWERS[body?.data?.code ?? ""] ?? "odd", requestId, detail: body?.data?.code };
  const kind = kindOf(body);
  const response = kind === "service_unavailable" ? "unavailable" : "odd";
  return { response, status, requestId, detail: `${kind}: ${body?.error?.detail}` };
}

/** What a sidecar returns, whose app answers 200. */
export function readGate(result: Result): Read {
  if (result.kind !== "answered") return { response: "none", detail: result.why };
  const requestId = String(result.headers["x-request-id"] ?? "");
  const { status } = result;
  if (status === 200) return { response: "valid", requestId };
  const body = readJson<Body>(result.text);
  const kind = kindOf(body);
  return { response: KINDS[kind] ?? "odd", status, requestId, detail: `${kind}: ${body?.error?.detail}` };
}

const kindOf = (body: Body | undefined): string => body?.error?.type?.split("/").at(-1) ?? "no kind";

/** What a verification requires: nothing, the permission that some keys hold, or one that all keys hold. */
export type Wanted = { readonly needs: "none" | "own" } | { readonly needs: "shared"; readonly slug: string };

/** Verifies a key at a process. Only a verification without a permission costs a credit. */
export async function ask(
  http: Http,
  options: { part: Part; workspace: Workspace; key: LoadKey; wanted: Wanted },
): Promise<AskEntry> {
  const { part, workspace, key, wanted } = options;
  const slug = wanted.needs === "shared" ? wanted.slug : wanted.needs === "own" ? PERMISSION : undefined;
  const { incarnation } = part;
  const isApi = part.name.startsWith("api-");
  const cost = slug === undefined ? 1 : 0;
  const result = isApi
    ? await callProcedure(http, {
        part,
        workspace,
        procedure: "keys.verifyKey",
        body: { key: key.secret, credits: { cost }, ...(slug === undefined ? {} : { permissions: slug }) },
        id: "torture/ask",
        timeoutMs: ASK_TIMEOUT_MS,
      })
    : await http.send({
        method: "GET",
        url: `${part.url}${slug === undefined ? "/" : guardedPath(slug)}`,
        headers: { authorization: `Bearer ${key.secret}` },
        timeoutMs: ASK_TIMEOUT_MS,
      });
  const read = isApi ? readVerification(result) : readGate(result);
  const { sentMs, answeredMs } = result;
  const of = { workspace: key.workspace, key: key.name, keyKind: key.kind };
  const at = { process: part.name, incarnation, needs: wanted.needs, through: throughOf(key, wanted), cost };
  return { type: "ask", ...of, ...at, sentMs, answeredMs, ...read };
}

/** The path at the sidecar that requires the permission. */
export const guardedPath = (slug: string): string => `/guarded/${slug}`;

function throughOf({ workspace, role }: LoadKey, wanted: Wanted): string | undefined {
  if (wanted.needs === "shared") return permissionKey(wanted.slug);
  return wanted.needs === "own" && role !== undefined ? roleKey(workspace, role.name) : undefined;
}
