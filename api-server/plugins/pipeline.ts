import type { IncomingHttpHeaders } from "node:http";
import { performance } from "node:perf_hooks";
import compileSerializer from "fast-json-stringify";
import type { FastifyInstance, FastifyReply } from "fastify";
import type * as z from "zod";
import type { Deps } from "../deps.ts";
import type { RequiredPermissions } from "../domain/permissions/required-permissions.ts";
import { countQuota } from "../domain/ratelimits/quota.ts";
import { ANY_CALL } from "../keys/root-key-usage.ts";
import { type Call, DataJson, type OpenCall } from "../procedure.ts";
import type { SessionRules } from "../sessions/signed-in.ts";
import { originOf } from "./actor.ts";
import type { ApiReply, ApiRequest, RouteSettings } from "./api-request.ts";
import { admit, type CachedRootKey, createRootKeys, readRootKeyHash } from "./auth.ts";
import { checkHead } from "./connections.ts";
import type { Deadlines, RunningRequest } from "./deadline.ts";
import type { DirectFront } from "./direct-front.ts";
import type { ErrorSender } from "./errors.ts";
import { responseSchema } from "./json-schema.ts";
import { createBodyReader } from "./read-body.ts";
import type { Content, HandlerResult, Served } from "./served.ts";
import { findSessionCaller, readSessionSender, type Sender, type SessionSender } from "./session-callers.ts";
import { untilDisconnected } from "./until-disconnected.ts";

/*
 * Steps before every handler, in the order of api-v2.md section 2; the first failure determines the response:
 *
 *   1 deadline   2 size of the body   3 form of the Authorization header, or cookie   4 content   5 root key or session, workspace   6 quota   7 handler
 *
 * `serve` begins after the body has been read; a body that is too large is rejected before. A request whose root
 * key is cached and whose workspace has no quota passes without waiting: no promise, no timer, no hook. `Served` contains the
 * differences between v1 and v2; v1 checks the content (4) before the form of the header (3).
 */

export interface PipelineDeps {
  readonly deps: Deps;
  readonly deadlines: Deadlines;
  readonly sendError: ErrorSender;
  readonly observe: (request: ApiRequest, status: number) => void;
  readonly sessionRules: SessionRules;
  /** The direct front, which serves simple calls of hot procedures instead of fastify. */
  readonly direct: DirectFront;
}

/** Serves every procedure at its path. */
export function registerProcedures(app: FastifyInstance, parts: PipelineDeps, procedures: readonly Served[]): void {
  const authentication = createAuthentication(parts);
  // Keeps the raw bytes, because body.ts parses them after the headers have been checked.
  app.removeAllContentTypeParsers();
  const readBytes = createBodyReader(async ({ headers, routeOptions: { config } }) => {
    const { caller } = await authentication.authenticate(authentication.read(headers, config.takesSessions === true));
    return config.isOpen === false ? caller.workspaceId : undefined;
  });
  for (const contentType of ["application/json", "*"]) app.addContentTypeParser(contentType, readBytes);
  for (const served of procedures) {
    const { method, url, responses, refusal, headers } = served;
    const isOpen = served.credentials === "none";
    const config = { isOpen, takesSessions: !isOpen && served.takesSessions, headers };
    const handler = serve(parts, authentication, served);
    if (served.isHot === true) parts.direct.add({ url, config, serve: handler });
    app.route({
      method,
      url,
      schema: { response: responses },
      serializerCompiler: ({ schema }) => createSerializer(schema as unknown as z.ZodType),
      config,
      exposeHeadRoute: false,
      handler,
      ...(refusal === undefined ? {} : { onRequest: (_request, _reply, done) => done(refusal()) }),
    });
  }
}

/**
 * Returns the serializer of a response schema. The schema is compiled for the first response, because compiling the schemas of all
 * procedures would delay the start of the server.
 */
function createSerializer(schema: z.ZodType): (data: unknown) => string {
  let serialize: ((data: unknown) => string) | undefined;
  return (data) => {
    serialize ??= compileSerializer(responseSchema(schema, "draft-7"));
    return serialize(data);
  };
}

/** Credentials of a call: the hash of a root key, or a session of the dashboard. */
type Credentials = string | SessionSender;

interface Authentication {
  /**
   * Step 3: reads the credentials. Throws PublicError 401 if their form is invalid. If the procedure accepts sessions, a session is used
   * when the header is absent.
   */
  readonly read: (headers: IncomingHttpHeaders, takesSessions: boolean) => Credentials;
  /**
   * Step 5: identifies the sender. Returns synchronously if the root key is cached, otherwise a promise. Throws or rejects with PublicError
   * 401 or 403.
   */
  readonly authenticate: (credentials: Credentials) => Sender | Promise<Sender>;
}

function createAuthentication({ deps, sessionRules }: PipelineDeps): Authentication {
  const rootKeys = createRootKeys(deps);
  function admitted(known: CachedRootKey): Sender {
    const rootKey = admit(known, deps.nowMs());
    rootKey.uses.note(ANY_CALL);
    return rootKey;
  }
  return {
    read(headers, takesSessions) {
      const session =
        takesSessions && headers.authorization === undefined ? readSessionSender(headers, sessionRules) : undefined;
      return session ?? readRootKeyHash(headers.authorization);
    },
    authenticate(credentials) {
      if (typeof credentials !== "string") return findSessionCaller(deps, sessionRules, credentials);
      const known = rootKeys.find(credentials);
      return known instanceof Promise ? known.then(admitted) : admitted(known);
    },
  };
}

/** A request that is being served. */
interface Arrived {
  readonly request: ApiRequest;
  readonly reply: ApiReply;
  /** Credentials of the request; `undefined` until their form has been checked. */
  readonly credentials: Credentials | undefined;
  /** Workspace of the root key or session; `undefined` until the root key or session has been accepted. */
  workspaceId: string | undefined;
}

/** Runs steps 4 to 7. Throws synchronously, or rejects later, with the error of the first failing step. */
type Run = (arrived: Arrived) => HandlerResult;

function runOpen(deps: Deps, { readContent, handle }: Served & { credentials: "none" }): Run {
  return ({ request, reply }) => {
    const { body } = readContent(request);
    const call: OpenCall<unknown> = {
      body,
      origin: originOf(request),
      deps,
      untilDisconnected: () => reply.untilDisconnected(),
    };
    return handle(call as OpenCall<never>);
  };
}

function runAuthenticated(
  deps: Deps,
  authentication: Authentication,
  { readContent, takesSessions, note, handle }: Exclude<Served, { credentials: "none" }>,
): Run {
  function callHandler(arrived: Arrived, { caller, grants }: Sender, { body, management }: Content): HandlerResult {
    arrived.workspaceId = caller.workspaceId;
    const call: Call<unknown, RequiredPermissions> = {
      body,
      caller,
      management,
      origin: originOf(arrived.request),
      deps,
      untilDisconnected: () => arrived.reply.untilDisconnected(),
      require: grants.require,
      holds: grants.holds,
      holdsForSome: grants.holdsForSome,
      idsHeld: grants.idsHeld,
      beyond: grants.beyond,
    };
    if (note !== undefined) note(call);
    return handle(call as Call<never, RequiredPermissions>);
  }

  function runAdmitted(arrived: Arrived, sender: Sender, read: Content | undefined): HandlerResult {
    const content = read ?? readContent(arrived.request);
    const { caller, quotaPerMinute } = sender;
    if (quotaPerMinute === undefined) return callHandler(arrived, sender, content);
    const charged = chargeQuota(deps, { workspaceId: caller.workspaceId, quotaPerMinute }, arrived.reply);
    return charged.then(() => callHandler(arrived, sender, content));
  }

  // Reports problems with the body before problems with the root key. A large body is an exception, because it is read only if the sender
  // has a valid root key.
  return (arrived) => {
    const { request } = arrived;
    const content = request.release === undefined ? readContent(request) : undefined;
    const credentials = arrived.credentials ?? authentication.read(request.headers, takesSessions);
    const sender = authentication.authenticate(credentials);
    return sender instanceof Promise
      ? sender.then((late) => runAdmitted(arrived, late, content))
      : runAdmitted(arrived, sender, content);
  };
}

function serve(parts: PipelineDeps, authentication: Authentication, served: Served) {
  const { deps, deadlines, sendError, observe } = parts;
  const { send } = served;
  const changes = served.effect === "change";
  const run = served.credentials === "none" ? runOpen(deps, served) : runAuthenticated(deps, authentication, served);

  function arrive(request: ApiRequest, reply: ApiReply): Arrived {
    const credentials =
      served.credentials === "beforeContent" ? authentication.read(request.headers, served.takesSessions) : undefined;
    if (typeof credentials === "object") reply.header("Cache-Control", "no-store");
    return { request, reply, credentials, workspaceId: undefined };
  }

  return (request: ApiRequest, reply: ApiReply): void => {
    const running: RunningRequest = { request, reply, startedMs: request.startedMs, slot: -1 };
    deadlines.begin(running);
    let arrived: Arrived | undefined;

    function succeed(data: unknown): void {
      if (!deadlines.end(running)) return;
      const workspaceId = arrived?.workspaceId;
      if (changes && workspaceId !== undefined && deps.propagationDelayed(workspaceId)) {
        reply.header("Postern-Propagation", "delayed");
      }
      observe(request, send(reply, data, request.id));
    }
    function fail(error: unknown): void {
      if (deadlines.end(running)) sendError(request, reply, error);
    }
    /**
     * The slot is released when the handler ends, which may be after the response was sent, because the memory of the body is freed only
     * then.
     */
    const release = (): void => request.release?.();

    try {
      arrived = arrive(request, reply);
      const response = run(arrived);
      if (response instanceof DataJson) succeed(response);
      else if (request.release === undefined) response.then(succeed, fail);
      else response.then(succeed, fail).finally(release);
    } catch (error) {
      fail(error);
      release();
    }
  };
}

/** Prepares fastify's objects for the pipeline: records the arrival time of a request, as `performance.now()`, and checks its head. */
export function registerArrival(app: FastifyInstance): void {
  app.decorateRequest("startedMs", 0);
  app.decorateRequest("discarded", undefined);
  app.decorateRequest("release", undefined);
  app.decorateReply("isDisconnected", function isDisconnected(this: FastifyReply) {
    return this.raw.destroyed || this.raw.socket?.destroyed === true;
  });
  app.decorateReply("untilDisconnected", function untilThisIsGone(this: FastifyReply) {
    return untilDisconnected(this.request, this);
  });
  app.addHook("onRequest", (request, _reply, done) => {
    request.startedMs = performance.now();
    checkHead(request);
    done();
  });
}

declare module "fastify" {
  interface FastifyRequest {
    startedMs: number;
  }
  interface FastifyReply {
    isDisconnected(): boolean;
    untilDisconnected(): AbortSignal;
  }
  interface FastifyContextConfig extends RouteSettings {}
}

/** Counts one request against the workspace's quota and sets the quota headers. Throws PublicError 429 for a request beyond the quota. */
export async function chargeQuota(
  deps: Deps,
  of: { readonly workspaceId: string; readonly quotaPerMinute: number },
  reply: Pick<ApiReply, "header">,
): Promise<void> {
  const { headers, refusal } = await countQuota(deps, of);
  for (let at = 0; at < headers.length; at += 2) reply.header(headers[at] as string, headers[at + 1]);
  if (refusal !== undefined) throw refusal;
}
