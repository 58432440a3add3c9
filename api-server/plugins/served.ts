import type * as z from "zod";
import type { PublicError } from "../../core/errors.ts";
import type { Management } from "../domain/managed/rules.ts";
import type { RequiredPermissions } from "../domain/permissions/required-permissions.ts";
import type { Call, DataJson, OpenCall } from "../procedure.ts";
import type { ApiReply, ApiRequest } from "./api-request.ts";

/* A procedure as the pipeline serves it. All differences between v1 and v2 are prepared once, at registration. */

/** The content of a request, without the identity of its sender. */
export interface Content {
  /** Body of the request; for a GET, the parsed query string. */
  readonly body: unknown;
  readonly management: Management;
}

/** Result of a handler: either serialized JSON, returned synchronously, or a promise of any value. */
export type HandlerResult = Promise<unknown> | DataJson;

interface Prepared {
  readonly method: "GET" | "POST";
  /** Path of the procedure, such as `/v2/keys.createKey`, which is also its name in metrics and logs. */
  readonly url: string;
  readonly effect: "read" | "change";
  /** Whether simple calls are served without fastify, and responses are serialized without its serializer. */
  readonly isHot?: boolean;
  /** Response schemas by status, for the serializer. */
  readonly responses: Readonly<Record<number, z.ZodType>>;
  /** Parses the content. Throws PublicError 400 if it is invalid. */
  readonly readContent: (request: ApiRequest) => Content;
  /** Returns the error for every call while this API version is disabled. The request body is not read. */
  readonly refusal?: (() => PublicError) | undefined;
  /** Headers of each response, including errors. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Sends the handler's result, and returns the status that was sent. */
  readonly send: (reply: ApiReply, data: unknown, requestId: string) => number;
}

interface WithRootKey extends Prepared {
  /** Whether the form of the `Authorization` header or of the cookie is checked before the content (v2) or after it (v1). */
  readonly credentials: "beforeContent" | "afterContent";
  /** Whether a call without the header can use a dashboard session. */
  readonly takesSessions: boolean;
  /** Called with each admitted call, before its handler. */
  readonly note?: (call: Call<unknown>) => void;
  readonly handle: (call: Call<never, RequiredPermissions>) => HandlerResult;
}

interface WithoutRootKey extends Prepared {
  readonly credentials: "none";
  readonly handle: (call: OpenCall<never>) => HandlerResult;
}

export type Served = WithRootKey | WithoutRootKey;

/**
 * Content type that fastify would set for an object. It is required because a serialized body is a string, for which fastify sets another
 * type.
 */
export const JSON_TYPE = "application/json; charset=utf-8";
