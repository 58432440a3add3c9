import * as z from "zod";
import { setOverride as set } from "../../domain/ratelimits/set-override.ts";
import { onNamespace } from "../../needed-permissions.ts";
import type { Call } from "../../procedure.ts";
import { defineV1Procedure } from "../../procedure-v1.ts";
import { Duration, OverrideAsync, OverrideId, OverrideLimit, OverrideRef } from "./schemas.ts";
import { checkNamespaceSelector, selectNamespace } from "./select-namespace.ts";

const Body = z.object({
  ...OverrideRef,
  limit: OverrideLimit,
  duration: Duration,
  async: OverrideAsync.default(false),
});
type Body = z.output<typeof Body>;

const Answer = z.object({ overrideId: OverrideId });

const needed = { setOverride: onNamespace("set_override") };

export const setOverride = defineV1Procedure({
  path: "ratelimits.setOverride",
  method: "POST",
  successor: "ratelimit.setOverride",
  effect: "change",
  summary: "Set an override",
  description:
    "Replaces limit and duration of calls for one identifier, or for all identifiers that match a pattern. An identifier of a namespace has at most one override: setting it again changes it and keeps its id.",
  permissions: needed,
  errors: ["ratelimit_namespace_not_found", "managed_elsewhere"],
  input: Body,
  check: checkNamespaceSelector,
  answer: Answer,
  handle,
});

async function handle(call: Call<Body, typeof needed>): Promise<z.input<typeof Answer>> {
  const { identifier, limit, duration, async } = call.body;
  const namespace = await selectNamespace(call, needed.setOverride, call.body);
  return { overrideId: await set(call, needed.setOverride, { namespace, identifier, limit, duration, async }) };
}
