import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import * as z from "zod";
import { PublicError } from "../../core/errors.ts";
import type { Deps } from "../deps.ts";
import type { ErrorSender } from "../plugins/errors.ts";
import { originOf } from "../plugins/origin-of.ts";
import { demandOwn } from "../plugins/session-callers.ts";
import { noCookie, readTokenCookie, SESSION_COOKIE, sessionCookie } from "../sessions/cookies.ts";
import { NO_ORIGIN, ownOrigins } from "../sessions/own-origin.ts";
import type { SessionRules } from "../sessions/signed-in.ts";
import { describeSession } from "./describe-session.ts";
import type { SignInParts } from "./parts.ts";
import { createProvider, type ProviderSettings } from "./provider.ts";
import { DEFAULT_SIGN_IN_BOUNDS, SignInBounds, type SignInBoundsOptions } from "./sign-in-bounds.ts";
import { signInByLink } from "./sign-in-by-link.ts";
import { registerProviderSignIn } from "./sign-in-by-provider.ts";
import { FailedSignIns } from "./sign-in-log.ts";
import { signOut } from "./sign-out.ts";

/*
 * How people get a session and leave it: what the dashboard calls beside the API. These are no procedures, because they set cookies, which
 * only a browser has; their form may change with any release.
 */

export interface SignInOptions {
  readonly rules: SessionRules;
  readonly bounds?: SignInBoundsOptions | undefined;
  /** Without one, people sign in with links alone. */
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
    bounds = DEFAULT_SIGN_IN_BOUNDS,
  }: SignInOptions & { deps: Deps; sendError: ErrorSender },
): void {
  const parts: SignInParts = {
    deps,
    rules,
    sendError,
    bounds: new SignInBounds(bounds),
    failed: new FailedSignIns(deps),
  };

  if (provider !== undefined) registerProviderSignIn(app, parts, createProvider(provider));

  /** What the page that signs people in has to show. */
  app.get("/dashboard/auth/options", (request, reply) =>
    answer(parts, request, reply, async () => {
      const isPossible = ownOrigins(request.headers.host, rules.address).length > 0;
      return {
        data: {
          problem: isPossible ? null : NO_ORIGIN,
          provider: provider === undefined ? null : new URL(provider.issuer).host,
        },
      };
    }),
  );

  /** Without an error when no person is signed in, because a page asks this before it knows. */
  app.get("/dashboard/session", (request, reply) =>
    answer(parts, request, reply, async () => {
      demandOwn(request.headers, rules);
      const token = readTokenCookie(request.headers.cookie, SESSION_COOKIE);
      const described = token === undefined ? { ended: null } : await describeSession(deps, rules, token);
      const isOver = "ended" in described;
      return { data: { session: isOver ? null : described, ended: isOver ? described.ended : null } };
    }),
  );

  app.post("/dashboard/auth/link", { config: { isOpen: true } }, (request, reply) =>
    answer(parts, request, reply, async () => {
      const origin = originOf(request);
      // First, so that a page of another site uses up nothing of what its readers may try.
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
    answer(parts, request, reply, async () => {
      demandOwn(request.headers, rules);
      const { everywhere } = readBody(SignOutBody, request.body);
      const token = readTokenCookie(request.headers.cookie, SESSION_COOKIE);
      if (token !== undefined) await signOut(deps, rules, { token, everywhere, origin: originOf(request) });
      reply.header("Set-Cookie", noCookie(SESSION_COOKIE));
      return { data: {} };
    }),
  );
}

/** Answers with an envelope, and an error like a procedure. Nothing of this may be kept by a cache. */
async function answer(
  { sendError }: SignInParts,
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

/** Throws PublicError where no cookie would be safe, or when a page of another site may have sent the request. */
function demandOrigin({ headers }: FastifyRequest, rules: SessionRules): void {
  if (ownOrigins(headers.host, rules.address).length === 0) throw new PublicError("precondition_failed", NO_ORIGIN);
  demandOwn(headers, rules);
}

/** The text of the body is in no message: it has a token. */
function readBody<Shape extends z.ZodType>(shape: Shape, body: unknown): z.output<Shape> {
  try {
    return shape.parse(JSON.parse((body as Buffer).toString()));
  } catch {
    throw new PublicError("invalid_input", "The body does not fit.", { errors: [] });
  }
}
