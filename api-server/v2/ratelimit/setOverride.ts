import * as z from "zod";
import { onNamespace } from "../../domain/permissions/required-permissions.ts";
import { setOverride as set } from "../../domain/ratelimits/set-override.ts";
import { type Call, defineProcedure } from "../../procedure.ts";
import { Namespace, OverrideIdentifier } from "./schemas.ts";

const Body = z.strictObject({
  namespace: Namespace,
  identifier: OverrideIdentifier,
  limit: z
    .int()
    .min(0)
    .describe("Units per window, which apply instead of those in the call. 0 rejects every request.")
    .meta({ examples: [1000] }),
  duration: z
    .int()
    .min(1000)
    .describe("Window length in ms.")
    .meta({ examples: [60_000] }),
  async: z
    .boolean()
    .default(false)
    .describe("Whether each process counts by itself and syncs in the background, which is faster but less exact.")
    .meta({ "x-postern-addition": true }),
});
type Body = z.output<typeof Body>;

const Data = z.strictObject({
  overrideId: z
    .string()
    .describe("Id of the override.")
    .meta({ examples: ["rlor_3mNp5Qr7St9Uv2Wx"] }),
});
type Data = z.input<typeof Data>;

const required = { setOverride: onNamespace("set_override") };

export const setOverride = defineProcedure({
  path: "ratelimit.setOverride",
  effect: "change",
  summary: "Set an override",
  description:
    "Sets the limit and duration that apply instead of those in the calls, for one identifier or for all that match a pattern. Setting an existing override changes it and keeps its id.",
  permissions: required,
  errors: ["ratelimit_namespace_not_found", "managed_by_manifest", "managed_exists"],
  body: Body,
  data: Data,
  handle,
});

async function handle(call: Call<Body, typeof required>): Promise<Data> {
  return { overrideId: await set(call, required.setOverride, call.body) };
}
