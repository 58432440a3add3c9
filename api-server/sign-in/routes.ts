import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import * as z from "zod";
import { PublicError } from "../../core/errors.ts";
import type { Deps } from "../deps.ts";
import { originOf } from "../plugins/actor.ts";
import type { ErrorSender } from "../plugins/errors.ts";
import { demandOwn } from "../plugins/session-callers.ts";
import { noCookie, readTokenCookie, SESSION_COOKIE, sessionCookie } from "../sessions/cookies.ts";
import { NO_ORIGIN, ownOrigins } from "../sessions/own-origin.ts";
import type { SessionRules } from "../sessions/signed-in.ts";
import { describeSession } from "./describe-session.ts";
import { createProvider, type ProviderSettings } from "./provider.ts";
import type { SignInDeps } from "./settings.ts";
import { signInByLink } from "./sign-in-by-link.ts";
import { registerProviderSignIn } from "./sign-in-by-provider.ts";
import { DEFAULT_SIGN_IN_LIMITS, SignInLimits, type SignInLimitsOptions } from "./sign-in-limits.ts";
import { FailedSignIns } from "./sign-in-log.ts";
import { signOut } from "./sign-out.ts";

/*
 * Endpoints for sign-in and sign-out, which the dashboard calls in addition to the API. They are not procedures, because they set cookies.
 * Their format may change with any release.
 */

export interface SignInOptions {
  readonly rules: SessionRules;
  readonly bounds?: SignInLimitsOptions | undefined;
  /** Settings of the OpenID provider; `undefined` if people sign in only with links. */
  readonly provider?: ProviderSettings | undefined;
}

const LinkBody = z.strictObject({ token: z.string().max(100) });
const SignOutBody = z.strictObject({ everywhere: z.boolean().default(false) });

export function registerSignIn(
  app: FastifyInstance,
  {
    deps,
    sendError,
    rules,
    provider,
    bounds = DEFAULT_SIGN_IN_LIMITS,
  }: SignInOptions & { deps: Deps; sendError: ErrorSender },
): void {
  const parts: SignInDeps = {
    deps,
    rules,
    sendError,
    bounds: new SignInLimits(bounds),
    failed: new FailedSignIns(deps),
  };

  if (provider !== undefined) registerProviderSignIn(app, parts, createProvider(provider));

  /** Returns the options that the sign-in page shows. */
  app.get("/dashboard/auth/options", (request, reply) =>
    respond(parts, request, reply, async () => {
      const isPossible = ownOrigins(request.headers.host, rules.address).length > 0;
      return {
        data: {
          problem: isPossible ? null : NO_ORIGIN,
          provider: provider === undefined ? null : new URL(provider.issuer).host,
        },
      };
    }),
  );

  /**
   * Responds without an error even if there is no session, because a page calls this endpoint to find out whether the person is signed in.
   */
  app.get("/dashboard/session", (request, reply) =>
    respond(parts, request, reply, async () => {
      demandOwn(request.headers, rules);
      const token = readTokenCookie(request.headers.cookie, SESSION_COOKIE);
      const described = token === undefined ? { ended: null } : await describeSession(deps, rules, token);
      const isOver = "ended" in described;
      return { data: { session: isOver ? null : described, ended: isOver ? described.ended : null } };
    }),
  );

  app.post("/dashboard/auth/link", { config: { isOpen: true } }, (request, reply) =>
    respond(parts, request, reply, async () => {
      const origin = originOf(request);
      // Checks the origin first, so that a page of another site cannot use up its visitors' allowance of attempts.
      demandOrigin(request, rules);
      parts.bounds.begin(origin.clientIp);
      const { token } = readBody(LinkBody, request.body);
      const oldToken = readTokenCookie(request.headers.cookie, SESSION_COOKIE);
      const session = await signInByLink(parts, { token, oldToken, origin });
      reply.header("Set-Cookie", sessionCookie(session));
      return { data: {} };
    }),
  );

  app.post("/dashboard/auth/sign-out", { config: { isOpen: true } }, (request, reply) =>
    respond(parts, request, reply, async () => {
      demandOwn(request.headers, rules);
      const { everywhere } = readBody(SignOutBody, request.body);
      const token = readTokenCookie(request.headers.cookie, SESSION_COOKIE);
      if (token !== undefined) await signOut(deps, rules, { token, everywhere, origin: originOf(request) });
      reply.header("Set-Cookie", noCookie(SESSION_COOKIE));
      return { data: {} };
    }),
  );
}

/** Responds like a procedure, with an envelope or an error body, but forbids caching. */
async function respond(
  { sendError }: SignInDeps,
  request: FastifyRequest,
  reply: FastifyReply,
  work: () => Promise<{ readonly data: object }>,
): Promise<FastifyReply> {
  reply.header("Cache-Control", "no-store");
  try {
    return reply.send({ ...(await work()), meta: { requestId: request.id } });
  } catch (error) {
    sendError(request, reply, error);
    return reply;
  }
}

/** Throws PublicError if a session cookie would not be safe at this address, or if a page of another site might have sent the request. */
function demandOrigin({ headers }: FastifyRequest, rules: SessionRules): void {
  if (ownOrigins(headers.host, rules.address).length === 0) throw new PublicError("precondition_failed", NO_ORIGIN);
  demandOwn(headers, rules);
}

/** Error messages never quote the body, because it contains a token. */
function readBody<Shape extends z.ZodType>(shape: Shape, body: unknown): z.output<Shape> {
  try {
    return shape.parse(JSON.parse((body as Buffer).toString()));
  } catch {
    throw new PublicError("invalid_input", "The body does not match its schema.", { errors: [] });
  }
}
