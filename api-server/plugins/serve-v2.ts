import * as z from "zod";
import { UNMANAGED } from "../domain/managed/rules.ts";
import { type AnyProcedure, DataJson, type Page } from "../procedure.ts";
import type { ApiReply, ApiRequest } from "./api-request.ts";
import { checkContentEncoding, checkContentType, parseBody } from "./body.ts";
import { responseSchema } from "./json-schema.ts";
import { readManagement } from "./management.ts";
import { type Content, JSON_TYPE, type Served } from "./served.ts";
import { compileBody } from "./validation.ts";

/*
 * The second generation of the API (api-v2.md section 2): each procedure is a POST with a JSON body and a root key, and its data
 * comes in an envelope.
 */

export function serveV2(procedure: AnyProcedure): Served {
  const url = `/v2/${procedure.path}`;
  const validate = compileBody(procedure.body, url);
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
    responses: { 200: responseSchema(successBody(procedure), "draft-7") },
    readContent,
    rootKey: "first",
    takesSessions: true,
    handle: procedure.handle,
    send: procedure.paginated === true ? sendPage : sendData,
  };
}

function sendData(reply: ApiReply, data: unknown, requestId: string): number {
  if (data instanceof DataJson) reply.header("content-type", JSON_TYPE).send(toBodyText(data, requestId));
  else reply.send({ data, meta: { requestId } });
  return 200;
}

/** A request id is made by us and needs no escapes. */
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
