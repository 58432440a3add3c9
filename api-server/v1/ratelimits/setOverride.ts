import * as z from "zod";
import { onNamespace } from "../../domain/permissions/required-permissions.ts";
import { setOverride as set } from "../../domain/ratelimits/set-override.ts";
import type { Call } from "../../procedure.ts";
import { defineV1Procedure } from "../procedure.ts";
import { Duration, OverrideAsync, OverrideId, OverrideLimit, OverrideRef } from "./schemas.ts";
import { checkNamespaceSelector, selectNamespace } from "./select-namespace.ts";

const Body = z.object({
  ...OverrideRef,
  limit: OverrideLimit,
  duration: Duration,
  async: OverrideAsync.default(false),
});
type Body = z.output<typeof Body>;

const ResponseBody = z.object({ overrideId: OverrideId });

const required = { setOverride: onNamespace("set_override") };

export const setOverride = defineV1Procedure({
  path: "ratelimits.setOverride",
  method: "POST",
  successor: "ratelimit.setOverride",
  effect: "change",
  summary: "Set an override",
  description:
    "Sets the limit and duration that apply instead of those in the calls, for one identifier or for all that match a pattern. Setting an existing override changes it and keeps its id.",
  permissions: required,
  errors: ["ratelimit_namespace_not_found", "managed_by_manifest"],
  input: Body,
  check: checkNamespaceSelector,
  response: ResponseBody,
  handle,
});

async function handle(call: Call<Body, typeof required>): Promise<z.input<typeof ResponseBody>> {
  const { identifier, limit, duration, async } = call.body;
  const namespace = await selectNamespace(call, required.setOverride, call.body);
  return { overrideId: await set(call, required.setOverride, { namespace, identifier, limit, duration, async }) };
}
