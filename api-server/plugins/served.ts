import type { PublicError } from "../../core/errors.ts";
import type { NeededPermissions } from "../needed-permissions.ts";
import type { Call, DataJson, Management, OpenCall } from "../procedure.ts";
import type { ApiReply, ApiRequest } from "./api-request.ts";
import type { JsonSchema } from "./json-schema.ts";

/*
 * A procedure as the pipeline serves it. What differs between the generations of the API is prepared here, once, when the
 * procedure is registered; a request then only follows it.
 */

/** The content of a request, without its sender. */
export interface Content {
  /** The body; of a GET, what its query says. */
  readonly body: unknown;
  readonly management: Management;
}

/** What a handler returns: JSON at once, or anything later. */
export type Answer = Promise<unknown> | DataJson;

interface Prepared {
  readonly method: "GET" | "POST";
  /** `/v2/keys.createKey`: where it is served, and its name in metrics and logs. */
  readonly url: string;
  readonly effect: "read" | "change";
  /** Plain calls are served without fastify, and its answers written without its serializer. */
  readonly isHot?: boolean;
  /** By status, for the serializer. */
  readonly responses: Readonly<Record<number, JsonSchema>>;
  /** Throws PublicError 400 for content that does not fit. */
  readonly readContent: (request: ApiRequest) => Content;
  /** Answers each call without reading its body, while the generation is switched off. */
  readonly refusal?: (() => PublicError) | undefined;
  /** On each answer, errors included. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Sends what the handler returned, and returns the status that was sent. */
  readonly send: (reply: ApiReply, data: unknown, requestId: string) => number;
}

interface WithRootKey extends Prepared {
  /** `first`: the form of the Authorization header is checked before the content is read, as v2 does; `second`: after it. */
  readonly rootKey: "first" | "second";
  /** Whether a call without the header may bring a session of the dashboard. */
  readonly takesSessions: boolean;
  /** Called with each call that was let through, before its handler. */
  readonly note?: (call: Call<unknown>) => void;
  readonly handle: (call: Call<never, NeededPermissions>) => Answer;
}

interface WithoutRootKey extends Prepared {
  readonly rootKey: "none";
  readonly handle: (call: OpenCall<never>) => Answer;
}

export type Served = WithRootKey | WithoutRootKey;

/** The content type that fastify sets for an object; a text is sent unchanged. */
export const JSON_TYPE = "application/json; charset=utf-8";
