import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { hashKey } from "../../core/keys/key-string.ts";
import { originOf } from "../plugins/origin-of.ts";
import {
  FLOW_COOKIE,
  flowCookie,
  noCookie,
  readTokenCookie,
  SESSION_COOKIE,
  sessionCookie,
} from "../sessions/cookies.ts";
import { insertSignInFlow, takeSignInFlow } from "../store/sign-in-flows.ts";
import { inTransaction } from "../store/transaction.ts";
import { newToken, openSession } from "./open-session.ts";
import type { SignInParts } from "./parts.ts";
import { type Claimed, type Provider, ProviderAway, ProviderDenied } from "./provider.ts";
import { returnPath } from "./return-path.ts";
import type { Failure } from "./sign-in-log.ts";
import { signOut } from "./sign-out.ts";

/*
 * Signing in with an OpenID provider. The browser is sent there and comes back:
 *
 *   start     a row with state, nonce, code verifier and the page that was wanted, under the hash of a cookie that this browser gets
 *   callback  takes the row: only this browser, with this state, within ten minutes, once. Then the code becomes a person, and the person a session
 *
 * The row is in Postgres and not in a sealed cookie, because to be used once it has to be known to all replicas anyway, and a sealed cookie
 * would need a key that they share. The price is a row for each start, which strangers may cause: starts are bounded, and each removes rows that have expired.
 *
 * What fails leads to the page to sign in, with a word of ours in its address; what the provider says goes to the log alone.
 */

const FLOW_LIVES_MS = 600_000;

const SIGN_IN_PAGE = "/dashboard/sign-in";

export function registerProviderSignIn(app: FastifyInstance, parts: SignInParts, provider: Provider): void {
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
  { sendError }: SignInParts,
  request: FastifyRequest,
  reply: FastifyReply,
  decide: () => Promise<string>,
): Promise<FastifyReply> {
  // The address that a browser comes back to has a code: nothing that the answer leads to may learn of it.
  reply.header("Cache-Control", "no-store").header("Referrer-Policy", "no-referrer");
  try {
    return reply.redirect(await decide(), 303);
  } catch (error) {
    sendError(request, reply, error);
    return reply;
  }
}

async function start(parts: SignInParts, provider: Provider, { request, reply }: Visit): Promise<string> {
  const { deps, rules, bounds } = parts;
  const origin = originOf(request);
  // Only the dashboard itself, or a person who typed the address: not a page of another site, which could do so again and again. It is not
  // counted either: a page with images of this address would use up what all readers at the same network address may try.
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
  // The cookie of a session is not sent when the browser comes back from the provider, so the old one ends here.
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

async function callback(parts: SignInParts, provider: Provider, { request, reply }: Visit): Promise<string> {
  const { deps, rules, bounds } = parts;
  const origin = originOf(request);
  // A provider sends the whole window back. An image, a frame or a script here is part of a page of another site, and is not counted either.
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
  const person = { ...claimed, signedInBy: "oidc", roles: [], assignments, how: `with ${claimed.issuer}` } as const;
  const token = await inTransaction(deps, (tx) =>
    openSession(tx, { deps, times: rules.times, person, oldToken: undefined, origin }),
  );
  reply.header("Set-Cookie", [sessionCookie(token), noCookie(FLOW_COOKIE)]);
  return flow.returnTo;
}

/** Returns the page to sign in, with what to say there. */
async function refuse({ deps, bounds, failed }: SignInParts, request: FastifyRequest, why: unknown): Promise<string> {
  const failure = typeof why === "string" ? (why as Failure) : failureOf(why);
  const origin = originOf(request);
  bounds.failed(origin.clientIp);
  if (failure !== "state") {
    const calls = deps.rarely.note(`sign-in: ${failure}`);
    if (calls !== undefined) deps.log.warn({ reason: describe(why), calls }, "a sign-in with the provider failed");
  }
  await failed.note(failure, origin);
  return `${SIGN_IN_PAGE}?error=${failure}`;
}

function failureOf(error: unknown): Failure {
  if (error instanceof ProviderAway) return "provider";
  return error instanceof ProviderDenied ? "denied" : "token";
}

const CAUSES_MAX = 5;

/**
 * Messages and codes of a chain of causes. No more: other members of these errors hold the request, with the client's secret and the code. What the
 * provider wrote is cut, because it may be anything.
 */
function describe(error: unknown): string {
  const parts: string[] = [];
  for (let at = error; at instanceof Error && parts.length < CAUSES_MAX; at = at.cause) {
    const { code, error: kind } = at as { code?: unknown; error?: unknown };
    const codes = [code, kind].filter((one) => typeof one === "string").map((one) => ` [${String(one).slice(0, 100)}]`);
    // That of JSON quotes what it could not read, which may be a token.
    const message = at instanceof SyntaxError ? "what was sent is no JSON" : at.message.slice(0, 200);
    parts.push(`${message}${codes.join("")}`);
  }
  return parts.join(": ");
}
