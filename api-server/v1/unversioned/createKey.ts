import type * as z from "zod";
import { makeKey } from "../../domain/keys/make-key.ts";
import { onApi } from "../../domain/permissions/required-permissions.ts";
import type { Call } from "../../procedure.ts";
import { Body as FullBody, ResponseBody } from "../keys/createKey.ts";
import { LegacyRatelimit, toRatelimit } from "../keys/legacy-limit.ts";
import { defineV1Procedure } from "../procedure.ts";

const PREFIX_MAX = 8;
const INTERVAL_MS_MIN = 1000;

const { refillRate, refillInterval } = LegacyRatelimit.shape;

const Body = FullBody.pick({
  apiId: true,
  name: true,
  byteLength: true,
  ownerId: true,
  meta: true,
  expires: true,
  remaining: true,
}).extend({
  prefix: FullBody.shape.prefix
    .unwrap()
    .max(PREFIX_MAX)
    .optional()
    .describe("Prefix of the key, followed by an underscore. Default: the prefix of the API.")
    .meta({ examples: ["prod"] }),
  ratelimit: LegacyRatelimit.pick({ type: true, limit: true })
    .extend({
      refillRate: refillRate.unwrap(),
      refillInterval: refillInterval.unwrap().min(INTERVAL_MS_MIN).describe("Window length in ms."),
    })
    .optional()
    .describe("Rate limit against which each verification counts."),
});
type Body = z.output<typeof Body>;

const required = { createKey: onApi("create_key") };

export const createKey = defineV1Procedure({
  path: "keys",
  method: "POST",
  successor: "keys.createKey",
  effect: "change",
  summary: "Create a key",
  description:
    "Oldest form of `keys.createKey`, with fewer fields. The `ownerId` is stored with the key, and no identity is created.",
  permissions: required,
  errors: ["api_not_found"],
  input: Body,
  response: ResponseBody,
  handle,
});

async function handle(call: Call<Body, typeof required>): Promise<z.input<typeof ResponseBody>> {
  const { ownerId, remaining, ratelimit, name, ...rest } = call.body;
  call.require(required.createKey, rest.apiId);
  const requested = {
    ...rest,
    name: name === "" ? undefined : name,
    ownerId: ownerId === "" ? undefined : ownerId,
    credits: remaining === undefined ? undefined : { remaining },
    ratelimits: ratelimit && [toRatelimit(ratelimit)],
    enabled: true,
    recoverable: false,
  };
  return makeKey(call, requested, { createKey: required.createKey, encryptKey: required.createKey });
}
