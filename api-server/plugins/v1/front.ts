import type { FastifyInstance } from "fastify";
import { PublicError } from "../../../core/errors.ts";
import type { ApiReply } from "../api-request.ts";

/*
 * Headers of every v1 response, including errors (api-v1.md section 2): the deprecation, the sunset date, the successor, and CORS
 * permission for all origins. This file also has the switch that disables v1.
 */

export interface V1Settings {
  /** Whether v1 is served; if false, each call returns 410. */
  readonly isServed: boolean;
  /** Sunset time of v1, Unix ms; `undefined` if no time is configured. */
  readonly sunsetMs?: number | undefined;
  /** Base URL of v2, without a trailing slash. Default: the same as that of v1. */
  readonly apiUrl?: string | undefined;
}

export interface V1Front {
  /** Returns the deprecation headers for responses of a v1 procedure. `successor` is its v2 procedure; `undefined` for an unknown path. */
  headersOf(successor?: string): Readonly<Record<string, string>>;
  /** Returns the error for calls while v1 is disabled. `successor` is the v2 procedure that replaces the called one. */
  refusalOf(successor: string): (() => PublicError) | undefined;
}

/** Date of the deprecation: 2026-01-01, in Unix seconds (RFC 9745). */
const DEPRECATION = `@${Date.UTC(2026, 0, 1) / 1000}`;

/** Response headers that web pages may read. */
const EXPOSED = [
  "X-Request-Id",
  "Deprecation",
  "Sunset",
  "Link",
  "Retry-After",
  "RateLimit-Limit",
  "RateLimit-Remaining",
  "RateLimit-Reset",
];

export function createV1Front({ isServed, sunsetMs, apiUrl = "" }: V1Settings): V1Front {
  const addressOf = (successor: string): string => `${apiUrl}/v2/${successor}`;
  return {
    headersOf: (successor) => ({
      Deprecation: DEPRECATION,
      ...(sunsetMs === undefined ? {} : { Sunset: new Date(sunsetMs).toUTCString() }),
      ...(successor === undefined ? {} : { Link: `<${addressOf(successor)}>; rel="successor-version"` }),
      "Access-Control-Allow-Origin": "*",
      "Access-Control-Expose-Headers": EXPOSED.join(", "),
    }),
    refusalOf: (successor) =>
      isServed
        ? undefined
        : () =>
            new PublicError(
              "api_v1_disabled",
              `Version 1 of the API is disabled. Call ${addressOf(successor)} instead.`,
            ),
  };
}

/** Sets the headers of v1 and the request id on a response. */
export function setV1Headers(reply: ApiReply, requestId: string, headers: Readonly<Record<string, string>>): void {
  for (const [name, value] of Object.entries(headers)) reply.header(name, value);
  reply.header("X-Request-Id", requestId);
}

/** Handles CORS preflight requests for v1. It lists `Authorization`, because a wildcard does not cover that header. */
export function registerV1Preflight(app: FastifyInstance, front: V1Front): void {
  const headers = {
    ...front.headersOf(),
    "Access-Control-Allow-Methods": "GET, POST",
    "Access-Control-Allow-Headers": "Authorization, Content-Type, *",
    "Access-Control-Max-Age": "86400",
  };
  app.options("/v1/*", (request, reply) => {
    setV1Headers(reply, request.id, headers);
    reply.status(204).send();
  });
}
