import * as z from "zod";
import { onNamespace, onNamespaces } from "../../domain/permissions/required-permissions.ts";
import { limitOnce } from "../../domain/ratelimits/limit-once.ts";
import { type Call, defineProcedure } from "../../procedure.ts";
import { AppliedLimitOut, AppliedOverrideOut, LimitFields, RemainingOut, WindowEndOut } from "./schemas.ts";

const Body = z.strictObject(LimitFields);
type Body = z.output<typeof Body>;

const Data = z.strictObject({
  success: z.boolean().describe("Whether the request is within the limit. The status is 200 in either case."),
  limit: AppliedLimitOut,
  remaining: RemainingOut,
  reset: WindowEndOut,
  overrideId: AppliedOverrideOut.optional(),
});
type Data = z.input<typeof Data>;

const required = {
  limit: onNamespace("limit"),
  createNamespace: onNamespaces("create_namespace", "when the namespace is new"),
};

export const limit = defineProcedure({
  path: "ratelimit.limit",
  effect: "read",
  isHot: true,
  summary: "Check and consume a rate limit",
  description:
    "Counts requests of the identifier in the namespace, in a sliding window that is aligned to the clock. A rejected call consumes nothing. The first use creates the namespace.",
  permissions: required,
  errors: ["ratelimit_namespace_gone"],
  body: Body,
  data: Data,
  handle,
});

async function handle(call: Call<Body, typeof required>): Promise<Data> {
  const { charge, override, outcome } = await limitOnce(call, required, call.body);
  return {
    success: outcome.passed,
    limit: charge.limit,
    remaining: outcome.remaining,
    reset: outcome.resetMs,
    ...(override === undefined ? {} : { overrideId: override.id }),
  };
}
