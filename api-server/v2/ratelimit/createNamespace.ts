import * as z from "zod";
import { onNamespaces } from "../../domain/permissions/required-permissions.ts";
import { createNamespace as create } from "../../domain/ratelimits/create-namespace.ts";
import { type Call, defineProcedure } from "../../procedure.ts";

const Body = z.strictObject({
  name: z
    .string()
    .min(1)
    .max(512)
    .describe("Name of the namespace; case-sensitive, unique among the live namespaces of the workspace.")
    .meta({ examples: ["email.outbound"] }),
});
type Body = z.output<typeof Body>;

const Data = z.strictObject({
  namespaceId: z
    .string()
    .describe("Id of the namespace.")
    .meta({ examples: ["rlns_6yZa8Bc1De3Fg5Hj"] }),
});
type Data = z.input<typeof Data>;

const required = { createNamespace: onNamespaces("create_namespace") };

export const createNamespace = defineProcedure({
  path: "ratelimit.createNamespace",
  effect: "change",
  summary: "Create a rate-limit namespace",
  description:
    "Creates a namespace with its own id, counters and overrides, even if a deleted namespace had the same name. With `Postern-Adopt: true`, an unmanaged namespace with the name is adopted instead.",
  permissions: required,
  errors: ["ratelimit_namespace_already_exists", "managed_exists"],
  addition: true,
  body: Body,
  data: Data,
  handle,
});

async function handle(call: Call<Body, typeof required>): Promise<Data> {
  call.require(required.createNamespace);
  return { namespaceId: await create(call, call.body.name) };
}
