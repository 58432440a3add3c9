import { performance } from "node:perf_hooks";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import * as z from "zod";
import { withoutPort } from "../../core/verification/ip-address.ts";
import type { Deps } from "../deps.ts";
import { UNMANAGED } from "../domain/managed/rules.ts";
import type { NeededPermissions } from "../needed-permissions.ts";
import { type AnyProcedure, type Call, DataJson, type Management, type Page } from "../procedure.ts";
import { admit, createRootKeys, type KnownRootKey, type RootKey, type RootKeys, readRootKeyHash } from "./auth.ts";
import { checkContentEncoding, checkContentType, parseBody } from "./body.ts";
import { checkHead } from "./connections.ts";
import type { Deadlines, RunningRequest } from "./deadline.ts";
import type { ErrorSender } from "./errors.ts";
import { type JsonSchema, responseSchema } from "./json-schema.ts";
import { readManagement } from "./management.ts";
import { chargeQuota } from "./quota.ts";
import { createBodyReader, UNJUDGED_BYTES_MAX } from "./read-body.ts";
import { compileBody } from "./validation.ts";

/*
 * The steps before every handler, in the order of api-v2.md section 2; the first failure answers:
 *
 *   1 deadline   2 size of the body   3 form of the Authorization header   4 body   5 root key, workspace   6 quota   7 handler
 *
 * The body has been read when `serve` begins, and was refused if it was too large. A request whose root
 * key is cached and whose workspace has no quota waits for nothing: no promise, no timer, no hook.
 */

export interface PipelineParts {
  readonly deps: Deps;
  readonly deadlines: Deadlines;
  readonly sendError: ErrorSender;
  readonly observe: (request: FastifyRequest, status: number) => void;
}

/** Serves every procedure at `POST /v2/<path>`. */
export function registerProcedures(
  app: FastifyInstance,
  parts: PipelineParts,
  procedures: readonly AnyProcedure[],
): void {
  const rootKeys = createRootKeys(parts.deps);
  // The raw bytes: they are parsed after the header was checked, and by our own rules.
  app.removeAllContentTypeParsers();
  const readBytes = createBodyReader(async ({ headers }) => {
    const hash = readRootKeyHash(headers.authorization);
    admit(await rootKeys.find(hash), parts.deps.nowMs());
  });
  for (const contentType of ["application/json", "*"]) app.addContentTypeParser(contentType, readBytes);
  for (const procedure of procedures) {
    app.post(
      `/v2/${procedure.path}`,
      { schema: { response: { 200: successSchema(procedure) } } },
      serve(parts, rootKeys, procedure),
    );
  }
}

type Answer = Promise<unknown> | DataJson;

/** A request whose header has the right form. */
interface Arrived {
  readonly request: FastifyRequest;
  readonly reply: FastifyReply;
  readonly rootKeyHash: string;
  /** The workspace of its root key; set when that was admitted. */
  workspaceId: string | undefined;
}

/** The content of a request, without its sender. */
interface Content {
  readonly body: unknown;
  readonly management: Management;
}

function serve(parts: PipelineParts, rootKeys: RootKeys, procedure: AnyProcedure) {
  const { deps, deadlines, sendError, observe } = parts;
  const validate = compileBody(procedure.body, procedure.path);
  const changes = procedure.effect === "change";

  /** Step 4. */
  function readContent({ request }: Arrived): Content {
    checkContentType(request.headers["content-type"]);
    checkContentEncoding(request.headers["content-encoding"]);
    const bytes = request.body as Buffer | undefined;
    const body = parseBody(bytes);
    validate(body, bytes?.length ?? 0);
    return { body, management: changes ? readManagement(request.headers) : UNMANAGED };
  }

  function callHandler(arrived: Arrived, rootKey: RootKey, { body, management }: Content): Answer {
    const { request } = arrived;
    const { caller, grants } = rootKey;
    arrived.workspaceId = caller.workspaceId;
    const call: Call<unknown, NeededPermissions> = {
      body,
      caller,
      management,
      origin: { requestId: request.id, clientIp: withoutPort(request.ip), userAgent: request.headers["user-agent"] },
      deps,
      require: grants.require,
      holds: grants.holds,
      holdsForSome: grants.holdsForSome,
      idsHeld: grants.idsHeld,
    };
    return procedure.handle(call as Call<never, NeededPermissions>);
  }

  /**
   * Steps 4 to 7. Throws synchronously, or rejects later, with the error of the first failing step. Problems of the body are
   * reported before those of the root key; but a large body is read only for a sender with a valid root key.
   */
  function run(arrived: Arrived): Answer {
    const bytes = arrived.request.body as Buffer | undefined;
    const isLarge = bytes !== undefined && bytes.length > UNJUDGED_BYTES_MAX;
    const content = isLarge ? undefined : readContent(arrived);
    const known = rootKeys.find(arrived.rootKeyHash);
    return known instanceof Promise
      ? known.then((late) => runKnown(arrived, late, content))
      : runKnown(arrived, known, content);
  }

  function runKnown(arrived: Arrived, known: KnownRootKey, read: Content | undefined): Answer {
    const rootKey = admit(known, deps.nowMs());
    const content = read ?? readContent(arrived);
    const { caller, quotaPerMinute } = rootKey;
    if (quotaPerMinute === undefined) return callHandler(arrived, rootKey, content);
    const charged = chargeQuota(deps, { workspaceId: caller.workspaceId, quotaPerMinute }, arrived.reply);
    return charged.then(() => callHandler(arrived, rootKey, content));
  }

  return (request: FastifyRequest, reply: FastifyReply): void => {
    const running: RunningRequest = { request, reply, startedMs: request.startedMs, slot: -1 };
    deadlines.begin(running);
    let arrived: Arrived | undefined;

    function succeed(data: unknown): void {
      if (!deadlines.end(running)) return;
      observe(request, 200);
      const workspaceId = arrived?.workspaceId;
      if (changes && workspaceId !== undefined && deps.propagationDelayed(workspaceId)) {
        reply.header("Postern-Propagation", "delayed");
      }
      if (data instanceof DataJson) reply.header("content-type", JSON_TYPE).send(toBodyText(data, request.id));
      else if (procedure.paginated === true) reply.send(toListBody(data as Page<unknown>, request.id));
      else reply.send(toBody(data, request.id));
    }
    function fail(error: unknown): void {
      if (deadlines.end(running)) sendError(request, reply, error);
    }

    try {
      const rootKeyHash = readRootKeyHash(request.headers.authorization);
      arrived = { request, reply, rootKeyHash, workspaceId: undefined };
      const answer = run(arrived);
      if (answer instanceof DataJson) succeed(answer);
      else answer.then(succeed, fail);
    } catch (error) {
      fail(error);
    }
  };
}

/** The body of a response whose data is JSON already. A request id is made by us and needs no escapes. */
const toBodyText = ({ json }: DataJson, requestId: string): string =>
  `{"data":${json},"meta":{"requestId":"${requestId}"}}`;

/** The content type that fastify sets for an object; a text is sent unchanged. */
const JSON_TYPE = "application/json; charset=utf-8";

const toBody = (data: unknown, requestId: string) => ({ data, meta: { requestId } });

const toListBody = ({ items, cursor }: Page<unknown>, requestId: string) => ({
  data: items,
  pagination: cursor === undefined ? { hasMore: false } : { hasMore: true, cursor },
  meta: { requestId },
});

export const ResponseMeta = z
  .strictObject({
    requestId: z
      .string()
      .describe("Created by the server for each request; logs, events and audit rows have it.")
      .meta({ examples: ["req_1aBc2DeF3gHi4JkL"] }),
  })
  .describe("About the answer itself.");
export const Pagination = z
  .strictObject({
    hasMore: z.boolean().describe("Whether there is a next page."),
    cursor: z
      .string()
      .optional()
      .describe("Where the next page begins; only when there is one.")
      .meta({ examples: ["key_4fGh7Jk2LmN8pQrS"] }),
  })
  .describe("Whether the list goes on, and where.");

/** The zod schema of a whole success body. */
export function successBody(procedure: AnyProcedure): z.ZodType {
  return procedure.paginated === true
    ? z.strictObject({ data: z.array(procedure.item), pagination: Pagination, meta: ResponseMeta })
    : z.strictObject({ data: procedure.data, meta: ResponseMeta });
}

const successSchema = (procedure: AnyProcedure): JsonSchema => responseSchema(successBody(procedure), "draft-7");

/** Records when a request arrived, by `performance.now()`, and checks its head. */
export function registerArrival(app: FastifyInstance): void {
  app.decorateRequest("startedMs", 0);
  app.decorateRequest("discarded", undefined);
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
}
