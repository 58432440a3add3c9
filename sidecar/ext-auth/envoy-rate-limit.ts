import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { retryAfter } from "../../core/api/retry.ts";
import { pushLimitHeaders, showTightest } from "../../core/ratelimits/limit-headers.ts";
import { retryAfterS } from "../../core/verification/conclude.ts";
import type { RateLimitDescriptor } from "./generated/envoy/extensions/common/ratelimit/v3/ratelimit_pb.js";
import {
  type RateLimitRequest,
  type RateLimitResponse,
  RateLimitResponseSchema,
  RateLimitResponse_Code as ResponseCode,
  type RateLimitResponse_DescriptorStatusSchema as StatusSchema,
  RateLimitResponse_RateLimit_Unit as Unit,
} from "./generated/envoy/service/ratelimit/v3/rls_pb.js";
import type { Descriptor, DescriptorOutcome, RateLimited } from "./rate-limit.ts";

/*
 * Envoy's rate limit service over gRPC: `envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit`. `rate-limit.ts` makes the decisions.
 */

/** The function `rateLimit` with its dependencies bound. */
export type RateLimiting = (domain: string, descriptors: readonly Descriptor[]) => Promise<RateLimited>;

const DESCRIPTORS_MAX = 100;
const COST_MAX = 1_000_000_000;
const UINT32_MAX = 0xffff_ffff;

const DAY_MS = 86_400_000;
/**
 * Duration of each unit by its number. The unit enums of requests and responses use the same numbers. A month has 30 days and a year 365,
 * as in Envoy's own service.
 */
const UNIT_MS: ReadonlyMap<number, number> = new Map([
  [Unit.SECOND, 1000],
  [Unit.MINUTE, 60_000],
  [Unit.HOUR, 3_600_000],
  [Unit.DAY, DAY_MS],
  [Unit.MONTH, 30 * DAY_MS],
  [Unit.YEAR, 365 * DAY_MS],
]);
/** Units in descending order of their duration. */
const UNITS = [...UNIT_MS].reverse();
const DURATION_MS_MAX = 10 * 365 * DAY_MS;

/**
 * Handles a rate limit request. Throws `ConnectError` if it is malformed, unknown or cannot be decided; Envoy then applies its
 * `failure_mode_deny`.
 */
export async function shouldRateLimit(rateLimit: RateLimiting, request: RateLimitRequest): Promise<RateLimitResponse> {
  const { domain, descriptors } = request;
  if (domain === "") throw new ConnectError("the request has no domain", Code.InvalidArgument);
  if (descriptors.length === 0) throw new ConnectError("the request has no descriptors", Code.InvalidArgument);
  if (descriptors.length > DESCRIPTORS_MAX) {
    throw new ConnectError(`the request has more than ${DESCRIPTORS_MAX} descriptors`, Code.InvalidArgument);
  }
  const limited = await rateLimit(
    domain,
    descriptors.map((one) => readDescriptor(one, request.hitsAddend)),
  );
  if (limited.kind === "undecided") throw new ConnectError(limited.reason, Code.Unavailable);
  if (limited.kind === "unknownDomain") {
    const name = JSON.stringify(domain.slice(0, 100));
    const known = "a domain is the name or the id of a rate-limit namespace of the workspace";
    throw new ConnectError(`there is no rate-limit namespace ${name}: ${known}`, Code.NotFound);
  }
  const { passed, outcomes, consumed } = limited;
  const charges = outcomes.flatMap(({ charge }) => (charge === undefined ? [] : [charge]));
  const headers: string[] = [];
  const shown = consumed && showTightest(charges, consumed);
  if (shown !== undefined) pushLimitHeaders(headers, shown);
  if (!passed && consumed !== undefined)
    headers.push("Retry-After", retryAfter(retryAfterS("RATE_LIMITED", consumed) ?? 1));
  return create(RateLimitResponseSchema, {
    overallCode: passed ? ResponseCode.OK : ResponseCode.OVER_LIMIT,
    statuses: outcomes.map((one) => statusOf(one, consumed?.nowMs ?? 0)),
    responseHeadersToAdd: pairs(headers),
  });
}

function readDescriptor(
  { entries, limit, hitsAddend, isNegativeHits }: RateLimitDescriptor,
  ofRequest: number,
): Descriptor {
  if (entries.length === 0) throw new ConnectError("a descriptor has no entries", Code.InvalidArgument);
  if (isNegativeHits) throw new ConnectError("hits cannot be given back", Code.Unimplemented);
  // A `hits_addend` of 0 in the request means that it is unset.
  const cost = hitsAddend === undefined ? ofRequest || 1 : Number(hitsAddend);
  const own = limit && { limit: limit.requestsPerUnit, durationMs: durationOf(limit) };
  return { entries, limit: own, cost: Math.min(cost, COST_MAX) };
}

function durationOf({ unit, unitMultiplier }: NonNullable<RateLimitDescriptor["limit"]>): number {
  const unitMs = UNIT_MS.get(unit);
  if (unitMs === undefined)
    throw new ConnectError("the limit of a descriptor has no unit that is known here", Code.InvalidArgument);
  const durationMs = unitMs * Math.max(1, unitMultiplier ?? 1);
  if (durationMs > DURATION_MS_MAX)
    throw new ConnectError("the limit of a descriptor is for more than ten years", Code.InvalidArgument);
  return durationMs;
}

/** Returns the duration as a multiple of the longest unit that divides it. */
function unitOf(durationMs: number): { readonly unit: Unit; readonly unitMultiplier?: number } {
  const found = UNITS.find(([, unitMs]) => durationMs % unitMs === 0);
  if (found === undefined) return { unit: Unit.UNKNOWN };
  const [unit, unitMs] = found;
  return durationMs === unitMs ? { unit } : { unit, unitMultiplier: durationMs / unitMs };
}

function statusOf({ charge, outcome }: DescriptorOutcome, nowMs: number): MessageInitShape<typeof StatusSchema> {
  if (charge === undefined) return { code: ResponseCode.OK };
  const currentLimit = {
    requestsPerUnit: Math.min(charge.limit, UINT32_MAX),
    ...unitOf(charge.durationMs),
  };
  if (outcome === undefined) return { code: ResponseCode.OK, currentLimit };
  const untilResetMs = Math.max(0, outcome.resetMs - nowMs);
  return {
    code: outcome.passed ? ResponseCode.OK : ResponseCode.OVER_LIMIT,
    currentLimit,
    limitRemaining: Math.min(outcome.remaining, UINT32_MAX),
    durationUntilReset: {
      seconds: BigInt(Math.floor(untilResetMs / 1000)),
      nanos: Math.round(untilResetMs % 1000) * 1_000_000,
    },
  };
}

function pairs(headers: readonly string[]): Array<{ key: string; value: string }> {
  const made: Array<{ key: string; value: string }> = [];
  for (let i = 0; i < headers.length; i += 2) made.push({ key: headers[i] as string, value: headers[i + 1] as string });
  return made;
}
