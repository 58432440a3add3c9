import * as z from "zod";
import { UNMANAGED } from "../domain/managed/rules.ts";
import { type AnyProcedure, DataJson, type Page } from "../procedure.ts";
import { readManagement } from "./actor.ts";
import type { ApiReply, ApiRequest } from "./api-request.ts";
import { checkContentEncoding, checkContentType, parseBody } from "./body.ts";
import { type Content, JSON_TYPE, type Served } from "./served.ts";
import { bodyValidator } from "./validation.ts";

/* Serves v2 (api-v2.md section 2): each procedure is a POST with a JSON body and a root key, and its response data is in an envelope. */

export function serveV2(procedure: AnyProcedure): Served {
  const url = `/v2/${procedure.path}`;
  const validate = bodyValidator(procedure.body, url);
  const { effect } = procedure;
  const changes = effect === "change";

  function readContent(request: ApiRequest): Content {
    checkContentType(request.headers["content-type"]);
    checkContentEncoding(request.headers["content-encoding"]);
    const bytes = request.body as Buffer | undefined;
    const body = parseBody(bytes);
    validate(body, bytes?.length ?? 0);
    return { body, management: changes ? readManagement(request.headers) : UNMANAGED };
  }

  return {
    method: "POST",
    url,
    effect,
    isHot: procedure.isHot === true,
    responses: { 200: successBody(procedure) },
    readContent,
    credentials: "beforeContent",
    takesSessions: true,
    handle: procedure.handle,
    send: procedure.paginated === true ? sendPage : sendData,
  };
}

function sendData(reply: ApiReply, data: unknown, requestId: string): number {
  if (data instanceof DataJson) reply.type(JSON_TYPE).send(toBodyText(data, requestId));
  else reply.send({ data, meta: { requestId } });
  return 200;
}

/** Returns the response body as text. The request id needs no escaping, because this server generated it. */
const toBodyText = ({ json }: DataJson, requestId: string): string =>
  `{"data":${json},"meta":{"requestId":"${requestId}"}}`;

function sendPage(reply: ApiReply, data: unknown, requestId: string): number {
  const { items, cursor } = data as Page<unknown>;
  const pagination = cursor === undefined ? { hasMore: false } : { hasMore: true, cursor };
  reply.send({ data: items, pagination, meta: { requestId } });
  return 200;
}

export const ResponseMeta = z
  .strictObject({
    requestId: z
      .string()
      .describe("Id that the server creates for each request. Logs, events and audit rows contain it.")
      .meta({ examples: ["req_1aBc2DeF3gHi4JkL"] }),
  })
  .describe("Metadata of the response.");
export const Pagination = z
  .strictObject({
    hasMore: z.boolean().describe("Whether a next page exists."),
    cursor: z
      .string()
      .optional()
      .describe("Cursor of the next page; omitted on the last page.")
      .meta({ examples: ["key_4fGh7Jk2LmN8pQrS"] }),
  })
  .describe("Pagination of the list.");

/** Returns the zod schema of a complete success body. */
export function successBody(procedure: AnyProcedure): z.ZodType {
  return procedure.paginated === true
    ? z.strictObject({ data: z.array(procedure.item), pagination: Pagination, meta: ResponseMeta })
    : z.strictObject({ data: procedure.data, meta: ResponseMeta });
}
