import type * as z from "zod";
import { UNMANAGED } from "../../domain/managed/rules.ts";
import { DataJson } from "../../procedure.ts";
import { type AnyV1Procedure, isOpen, OtherResponse } from "../../v1/procedure.ts";
import type { ApiReply, ApiRequest } from "../api-request.ts";
import { checkContentEncoding, checkStorable, isJsonType, parseBody } from "../body.ts";
import { compileQuery } from "../query.ts";
import { JSON_TYPE, type Served } from "../served.ts";
import { bodyValidator } from "../validation.ts";
import { setV1Headers, type V1Front } from "./front.ts";
import type { V1Usage } from "./usage.ts";

/*
 * Serves v1 (api-v1.md section 2). Each procedure is a GET with a query string or a POST with a body. This input is validated before the
 * root key. Responses have no envelope. v1 calls cannot change managed objects, because v1 has no management headers.
 */

export function serveV1(procedure: AnyV1Procedure, { front, uses }: { front: V1Front; uses: V1Usage }): Served {
  const { method, effect, check, status = 200 } = procedure;
  const url = `/v1/${procedure.path}`;
  const read = method === "GET" ? compileGet(procedure.input, url) : readBody;
  const validate = bodyValidator(procedure.input, url);
  const headers = front.headersOf(procedure.successor);
  const prepared = {
    method,
    url,
    effect,
    responses: { ...procedure.otherResponses, [status]: procedure.response },
    readContent: (request: ApiRequest) => {
      const body = read(request);
      validate(body, TELL_THE_FIRST_FAULT);
      check?.(body as never);
      return { body, management: UNMANAGED };
    },
    refusal: front.refusalOf(procedure.successor),
    headers,
    send: sendBare(status, headers),
  };
  return isOpen(procedure)
    ? { ...prepared, credentials: "none", handle: procedure.handle }
    : { ...prepared, credentials: "afterContent", takesSessions: false, note: uses.note, handle: procedure.handle };
}

/** Body size that v1 passes to validation. It makes validation stop at the first error of any body, because v1 reports only one. */
const TELL_THE_FIRST_FAULT = Number.POSITIVE_INFINITY;

function compileGet(input: z.ZodType, url: string) {
  const readQuery = compileQuery(input, url);
  return (request: ApiRequest): unknown => {
    const query = readQuery(request);
    checkStorable(query);
    return query;
  };
}

/** Returns the parsed body. A body whose content type is not JSON counts as an empty object. */
function readBody({ headers, body }: ApiRequest): unknown {
  if (!isJsonType(headers["content-type"])) return {};
  checkContentEncoding(headers["content-encoding"]);
  return parseBody(body as Buffer | undefined);
}

const sendBare =
  (usual: number, headers: Readonly<Record<string, string>>) =>
  (reply: ApiReply, response: unknown, requestId: string): number => {
    setV1Headers(reply, requestId, headers);
    if (response instanceof DataJson) {
      reply.status(usual).header("content-type", JSON_TYPE).send(response.json);
      return usual;
    }
    const { status, body } = response instanceof OtherResponse ? response : { status: usual, body: response };
    reply.status(status).send(body);
    return status;
  };
