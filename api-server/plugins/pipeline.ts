import { performance } from "node:perf_hooks";
import type { FastifyInstance, FastifyReply } from "fastify";
import type { Deps } from "../deps.ts";
import type { NeededPermissions } from "../needed-permissions.ts";
import { type Call, DataJson, type OpenCall } from "../procedure.ts";
import { ANY_CALL } from "../root-key-uses.ts";
import type { SessionRules } from "../sessions/signed-in.ts";
import type { ApiReply, ApiRequest, RouteSettings } from "./api-request.ts";
import { admit, createRootKeys, type KnownRootKey, type RootKeys, readRootKeyHash } from "./auth.ts";
import { checkHead } from "./connections.ts";
import type { Deadlines, RunningRequest } from "./deadline.ts";
import type { DirectFront } from "./direct-front.ts";
import type { ErrorSender } from "./errors.ts";
import { originOf } from "./origin-of.ts";
import { chargeQuota } from "./quota.ts";
import { createBodyReader } from "./read-body.ts";
import type { Answer, Content, Served } from "./served.ts";
import { findSessionCaller, readSessionSender, type Sender, type SessionSender } from "./session-callers.ts";
import { untilGone } from "./until-gone.ts";

/*
 * The steps before every handler, in the order of api-v2.md section 2; the first failure answers:
 *
 *   1 deadline   2 size of the body   3 form of the Authorization header, or cookie   4 content   5 root key or session, workspace   6 quota   7 handler
 *
 * The body has been read when `serve` begins, and was refused if it was too large. A request whose root
 * key is cached and whose workspace has no quota waits for nothing: no promise, no timer, no hook. What differs between the
 * generations of the API is said by `Served`; v1 takes step 4 before step 3.
 */

export interface PipelineParts {
  readonly deps: Deps;
  readonly deadlines: Deadlines;
  readonly sendError: ErrorSender;
  readonly observe: (request: ApiRequest, status: number) => void;
  readonly sessionRules: SessionRules;
  /** For hot procedures, besides fastify. */
  readonly direct: DirectFront;
}

/** Serves every procedure at its address. */
export function registerProcedures(app: FastifyInstance, parts: PipelineParts, procedures: readonly Served[]): void {
  const rootKeys = createRootKeys(parts.deps);
  // The raw bytes: they are parsed after the header was checked, and by our own rules.
  app.removeAllContentTypeParsers();
  const readBytes = createBodyReader(async ({ headers, routeOptions: { config } }) => {
    if (config.takesSessions === true && headers.authorization === undefined) {
      const session = readSessionSender(headers, parts.sessionRules);
      if (session !== undefined) {
        return (await findSessionCaller(parts.deps, parts.sessionRules, session)).caller.workspaceId;
      }
    }
    const hash = readRootKeyHash(headers.authorization);
    const { caller } = admit(await rootKeys.find(hash), parts.deps.nowMs());
    return config.isOpen === false ? caller.workspaceId : undefined;
  });
  for (const contentType of ["application/json", "*"]) app.addContentTypeParser(contentType, readBytes);
  for (const served of procedures) {
    const { method, url, responses, rootKey, refusal, headers } = served;
    const schema = { response: responses };
    const takesSessions = rootKey !== "none" && served.takesSessions;
    const config = { isOpen: rootKey === "none", takesSessions, headers };
    const handler = serve(parts, rootKeys, served);
    if (served.isHot === true) parts.direct.add({ url, config, serve: handler });
    app.route({
      method,
      url,
      schema,
      config,
      exposeHeadRoute: false,
      handler,
      ...(refusal === undefined ? {} : { onRequest: (_request, _reply, done) => done(refusal()) }),
    });
  }
}

/** A request that is being served. */
interface Arrived {
  readonly request: ApiRequest;
  readonly reply: ApiReply;
  /** undefined until the form of the header has been checked. */
  readonly rootKeyHash: string | undefined;
  /** In the place of a root key. */
  readonly session: SessionSender | undefined;
  /** The workspace of its root key; set when that was admitted. */
  workspaceId: string | undefined;
}

/** Steps 4 to 7. Throws synchronously, or rejects later, with the error of the first failing step. */
type Run = (arrived: Arrived) => Answer;

function runWithoutRootKey(deps: Deps, { readContent, handle }: Served & { rootKey: "none" }): Run {
  return ({ request, reply }) => {
    const { body } = readContent(request);
    const call: OpenCall<unknown> = {
      body,
      origin: originOf(request),
      deps,
      untilGone: () => reply.untilGone(),
    };
    return handle(call as OpenCall<never>);
  };
}

function runWithRootKey(
  { deps, sessionRules }: PipelineParts,
  rootKeys: RootKeys,
  { readContent, note, handle }: Exclude<Served, { rootKey: "none" }>,
): Run {
  function callHandler(arrived: Arrived, { caller, grants }: Sender, { body, management }: Content): Answer {
    arrived.workspaceId = caller.workspaceId;
    const call: Call<unknown, NeededPermissions> = {
      body,
      caller,
      management,
      origin: originOf(arrived.request),
      deps,
      untilGone: () => arrived.reply.untilGone(),
      require: grants.require,
      holds: grants.holds,
      holdsForSome: grants.holdsForSome,
      idsHeld: grants.idsHeld,
      beyond: grants.beyond,
    };
    if (note !== undefined) note(call);
    return handle(call as Call<never, NeededPermissions>);
  }

  function runKnown(arrived: Arrived, known: KnownRootKey, read: Content | undefined): Answer {
    const rootKey = admit(known, deps.nowMs());
    rootKey.uses.note(ANY_CALL);
    return runAdmitted(arrived, rootKey, read);
  }

  function runAdmitted(arrived: Arrived, sender: Sender, read: Content | undefined): Answer {
    const content = read ?? readContent(arrived.request);
    const { caller, quotaPerMinute } = sender;
    if (quotaPerMinute === undefined) return callHandler(arrived, sender, content);
    const charged = chargeQuota(deps, { workspaceId: caller.workspaceId, quotaPerMinute }, arrived.reply);
    return charged.then(() => callHandler(arrived, sender, content));
  }

  // Problems of the body are reported before those of the root key; but a large body is read only for a sender with a valid one.
  return (arrived) => {
    const { request, rootKeyHash, session } = arrived;
    const content = request.release === undefined ? readContent(request) : undefined;
    if (session !== undefined) {
      const found = findSessionCaller(deps, sessionRules, session);
      return found.then((sender) => runAdmitted(arrived, sender, content));
    }
    const known = rootKeys.find(rootKeyHash ?? readRootKeyHash(request.headers.authorization));
    return known instanceof Promise
      ? known.then((late) => runKnown(arrived, late, content))
      : runKnown(arrived, known, content);
  };
}

function serve(parts: PipelineParts, rootKeys: RootKeys, served: Served) {
  const { deps, deadlines, sendError, observe } = parts;
  const { send } = served;
  const changes = served.effect === "change";
  const headerFirst = served.rootKey === "first";
  const run = served.rootKey === "none" ? runWithoutRootKey(deps, served) : runWithRootKey(parts, rootKeys, served);

  /** What the sender is known by. Only of v2, which checks the header before anything else, a session may take the place of a root key. */
  function arrive(request: ApiRequest, reply: ApiReply): Arrived {
    const { headers } = request;
    if (headers.authorization === undefined && served.rootKey !== "none" && served.takesSessions) {
      const session = readSessionSender(headers, parts.sessionRules);
      if (session !== undefined) {
        reply.header("Cache-Control", "no-store");
        return { request, reply, session, rootKeyHash: undefined, workspaceId: undefined };
      }
    }
    const rootKeyHash = headerFirst ? readRootKeyHash(headers.authorization) : undefined;
    return { request, reply, session: undefined, rootKeyHash, workspaceId: undefined };
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
    /** Not when the client was answered, which may be earlier: what the handler holds is freed when it ends. */
    const release = (): void => request.release?.();

    try {
      arrived = arrive(request, reply);
      const answer = run(arrived);
      if (answer instanceof DataJson) succeed(answer);
      else if (request.release === undefined) answer.then(succeed, fail);
      else answer.then(succeed, fail).finally(release);
    } catch (error) {
      fail(error);
      release();
    }
  };
}

/** Makes fastify's objects those of the pipeline: records when a request arrived, by `performance.now()`, and checks its head. */
export function registerArrival(app: FastifyInstance): void {
  app.decorateRequest("startedMs", 0);
  app.decorateRequest("discarded", undefined);
  app.decorateRequest("release", undefined);
  app.decorateReply("isGone", function isGone(this: FastifyReply) {
    return this.raw.destroyed || this.raw.socket?.destroyed === true;
  });
  app.decorateReply("untilGone", function untilThisIsGone(this: FastifyReply) {
    return untilGone(this.request, this);
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
    isGone(): boolean;
    untilGone(): AbortSignal;
  }
  interface FastifyContextConfig extends RouteSettings {}
}
