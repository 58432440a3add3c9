import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { hashKey } from "../../core/keys/key-string.ts";
import { insertSignInFlow, takeSignInFlow } from "../db/sign-in-flows.ts";
import { inTransaction } from "../db/transaction.ts";
import { originOf } from "../plugins/actor.ts";
import {
  FLOW_COOKIE,
  flowCookie,
  noCookie,
  readTokenCookie,
  SESSION_COOKIE,
  sessionCookie,
} from "../sessions/cookies.ts";
import { newToken, openSession } from "./open-session.ts";
import { type Claimed, type Provider, ProviderDenied, ProviderUnavailable } from "./provider.ts";
import { returnPath } from "./return-path.ts";
import type { SignInDeps } from "./settings.ts";
import type { Failure } from "./sign-in-log.ts";
import { signOut } from "./sign-out.ts";

/*
 * Sign-in with an OpenID provider, which redirects the browser there and back:
 *
 *   start     inserts a row with state, nonce, code verifier and the requested page, under the hash of a cookie that this browser gets
 *   callback  takes the row: only for this browser and state, within ten minutes, once. Then the code is exchanged, and a session opened
 *
 * The row is in Postgres and not in a sealed cookie, because all replicas must know that it was used, and a sealed cookie would need a
 * shared key. Unauthenticated clients can create rows, so starts are limited, and each start removes expired rows.
 *
 * A failure redirects to the sign-in page, with a fixed error code in its URL; only the log contains the provider's message.
 */

const FLOW_LIVES_MS = 600_000;

const SIGN_IN_PAGE = "/dashboard/sign-in";

export function registerProviderSignIn(app: FastifyInstance, parts: SignInDeps, provider: Provider): void {
  app.get("/dashboard/auth/start", (request, reply) =>
    redirectTo(parts, request, reply, () => start(parts, provider, { request, reply })),
  );
  app.get("/dashboard/auth/callback", (request, reply) =>
    redirectTo(parts, request, reply, () => callback(parts, provider, { request, reply })),
  );
}

interface Visit {
  readonly request: FastifyRequest;
  readonly reply: FastifyReply;
}

async function redirectTo(
  { sendError }: SignInDeps,
  request: FastifyRequest,
  reply: FastifyReply,
  decide: () => Promise<string>,
): Promise<FastifyReply> {
  // The callback URL contains a code, so the response forbids caching and the Referer header.
  reply.header("Cache-Control", "no-store").header("Referrer-Policy", "no-referrer");
  try {
    return reply.redirect(await decide(), 303);
  } catch (error) {
    sendError(request, reply, error);
    return reply;
  }
}

async function start(parts: SignInDeps, provider: Provider, { request, reply }: Visit): Promise<string> {
  const { deps, rules, bounds } = parts;
  const origin = originOf(request);
  // Accepts only requests from the dashboard itself and typed URLs, because a page of another site could start sign-ins repeatedly.
  // Rejected requests are not counted: otherwise, a page that embeds this URL as images could use up the allowance of all visitors who
  // share a network address.
  const site = request.headers["sec-fetch-site"];
  if (site !== undefined && site !== "same-origin" && site !== "none") return SIGN_IN_PAGE;
  bounds.begin(origin.clientIp);
  const { to } = request.query as { to?: unknown };
  let begun: Awaited<ReturnType<Provider["begin"]>>;
  try {
    begun = await provider.begin();
  } catch (error) {
    return refuse(parts, request, error);
  }
  // Ends the old session here, because the browser does not send the session cookie when the provider redirects back.
  const oldToken = readTokenCookie(request.headers.cookie, SESSION_COOKIE);
  if (oldToken !== undefined) await signOut(deps, rules, { token: oldToken, everywhere: false, origin });
  const browser = newToken(deps);
  const { state, nonce, codeVerifier, url } = begun;
  const nowMs = deps.nowMs();
  const expiresAt = nowMs + FLOW_LIVES_MS;
  const flow = { browserHash: hashKey(browser), state, nonce, codeVerifier, returnTo: returnPath(to), expiresAt };
  await insertSignInFlow(deps.db, flow, nowMs);
  reply.header("Set-Cookie", flowCookie(browser, FLOW_LIVES_MS / 1000));
  return url;
}

async function callback(parts: SignInDeps, provider: Provider, { request, reply }: Visit): Promise<string> {
  const { deps, rules, bounds } = parts;
  const origin = originOf(request);
  // A provider redirects the whole browser window, so a request for an image, a frame or a script comes from a page of another site. Such a
  // request is not counted.
  const destination = request.headers["sec-fetch-dest"];
  if (destination !== undefined && destination !== "document") return SIGN_IN_PAGE;
  bounds.begin(origin.clientIp);
  const browser = readTokenCookie(request.headers.cookie, FLOW_COOKIE);
  const { state } = request.query as { state?: unknown };
  const flow =
    browser === undefined || typeof state !== "string" || state.includes("\0")
      ? undefined
      : await takeSignInFlow(deps.db, { browserHash: hashKey(browser), state, nowMs: deps.nowMs() });
  if (flow === undefined) return refuse(parts, request, "state");
  let claimed: Claimed;
  try {
    const at = request.url.indexOf("?");
    claimed = await provider.finish(at === -1 ? "" : request.url.slice(at), flow);
  } catch (error) {
    return refuse(parts, request, error);
  }
  const assignments = rules.rolesOfGroups(claimed.groups);
  const how = `with ${claimed.issuer}`;
  const person = { ...claimed, signedInBy: "oidc", roles: [], linkMadeBy: null, assignments, how } as const;
  const token = await inTransaction(deps, (tx) =>
    openSession(tx, { deps, times: rules.times, person, oldToken: undefined, origin }),
  );
  reply.header("Set-Cookie", [sessionCookie(token), noCookie(FLOW_COOKIE)]);
  return flow.returnTo;
}

/** Records a failed sign-in. Returns the URL of the sign-in page with an error code. */
async function refuse({ deps, bounds, failed }: SignInDeps, request: FastifyRequest, why: unknown): Promise<string> {
  const failure = typeof why === "string" ? (why as Failure) : failureOf(why);
  const origin = originOf(request);
  bounds.failed(origin.clientIp);
  if (failure !== "state") {
    const calls = deps.throttle.note(`sign-in: ${failure}`);
    if (calls !== undefined) deps.log.warn({ reason: describe(why), calls }, "a sign-in with the provider failed");
  }
  await failed.note(failure, origin);
  return `${SIGN_IN_PAGE}?error=${failure}`;
}

function failureOf(error: unknown): Failure {
  if (error instanceof ProviderUnavailable) return "provider";
  return error instanceof ProviderDenied ? "denied" : "token";
}

const CAUSES_MAX = 5;

/**
 * Returns only the messages and codes of a chain of causes, because other members of such errors contain the request, which includes the
 * client's secret and the code. The provider's text is truncated, because it may be arbitrary.
 */
function describe(error: unknown): string {
  const parts: string[] = [];
  for (let at = error; at instanceof Error && parts.length < CAUSES_MAX; at = at.cause) {
    const { code, error: kind } = at as { code?: unknown; error?: unknown };
    const codes = [code, kind].filter((one) => typeof one === "string").map((one) => ` [${String(one).slice(0, 100)}]`);
    // Omits the message of the JSON parser, which quotes the unreadable text and so may contain a token.
    const message = at instanceof SyntaxError ? "the response is not JSON" : at.message.slice(0, 200);
    parts.push(`${message}${codes.join("")}`);
  }
  return parts.join(": ");
}
