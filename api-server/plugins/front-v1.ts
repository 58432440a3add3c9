import type { FastifyInstance } from "fastify";
import { PublicError } from "../../core/errors.ts";
import type { ApiReply } from "./api-request.ts";

/*
 * What every answer of v1 carries, errors included (api-v1.md section 2): that the generation is deprecated, until when it is served,
 * and what takes its place; and leave for pages of every origin to read it. Also the switch that turns the generation off.
 */

export interface V1Settings {
  /** false: each call is answered 410. */
  readonly isServed: boolean;
  /** Until when it is served, Unix ms; undefined while that is not decided. */
  readonly sunsetMs?: number | undefined;
  /** Where clients reach v2, without a slash at the end; left out: at the same address as v1. */
  readonly apiUrl?: string | undefined;
}

export interface V1Front {
  /** The headers of each answer of a procedure with this successor; without one those of an unknown path. */
  headersOf(successor?: string): Readonly<Record<string, string>>;
  /** While v1 is switched off: the error with which a call of a procedure with this successor is answered. */
  refusalOf(successor: string): (() => PublicError) | undefined;
}

/** 2026-01-01, in Unix seconds (RFC 9745). */
const DEPRECATION = `@${Date.UTC(2026, 0, 1) / 1000}`;

/** What a page may read of an answer besides its body. */
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
              "api_v1_off",
              `The first generation of the API is switched off. Call ${addressOf(successor)} instead.`,
            ),
  };
}

/** Writes the headers of v1 onto an answer, and its request id. */
export function setV1Headers(reply: ApiReply, requestId: string, headers: Readonly<Record<string, string>>): void {
  for (const [name, value] of Object.entries(headers)) reply.header(name, value);
  reply.header("X-Request-Id", requestId);
}

/** Answers what a browser asks before it lets a page of another origin call v1. A wildcard does not cover `Authorization`. */
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
