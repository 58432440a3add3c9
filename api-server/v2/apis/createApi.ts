import * as z from "zod";
import { makeId } from "../../../core/ids.ts";
import { auditEvent } from "../../domain/managed/changes.ts";
import { createOnce } from "../../domain/managed/create-once.ts";
import { creatingManager } from "../../domain/managed/rules.ts";
import { MANAGED } from "../../domain/managed/things.ts";
import { onApis } from "../../needed-permissions.ts";
import { type Call, defineProcedure } from "../../procedure.ts";
import { insertApi } from "../../store/apis.ts";
import { insertAudit } from "../../store/audit.ts";
import { inTransaction } from "../../store/transaction.ts";

const Body = z.strictObject({
  name: z
    .string()
    .min(3)
    .max(256)
    .describe("A name for people; need not be unique.")
    .meta({ examples: ["payments"] }),
});
type Body = z.output<typeof Body>;

const Data = z.strictObject({
  apiId: z
    .string()
    .describe("Id of the API.")
    .meta({ examples: ["api_9xKp3Rt6VwY1zAbC"] }),
});

const needed = { createApi: onApis("create_api") };

export const createApi = defineProcedure({
  path: "apis.createApi",
  effect: "change",
  summary: "Create an API",
  description: "Keys belong to an API. With the header `Postern-Manager`, the call can be repeated safely.",
  permissions: needed,
  errors: [],
  body: Body,
  data: Data,
  handle,
});

async function handle(call: Call<Body, typeof needed>): Promise<z.input<typeof Data>> {
  const { body, caller, deps } = call;
  call.require(needed.createApi);
  const { workspaceId } = caller;
  const manager = creatingManager(call);
  return inTransaction(deps, async (tx) => {
    const apiId = makeId("api", deps.randomBytes(16));
    const keySpaceId = makeId("keySpace", deps.randomBytes(16));
    const api = { id: apiId, workspaceId, keySpaceId, name: body.name, manager, createdAt: deps.nowMs() };
    const creation = await createOnce(tx, call, "api", () => insertApi(tx, api));
    if (creation.outcome === "own") return { apiId: creation.id };
    if (creation.outcome === "taken") throw new Error("an API was neither made nor found");
    await insertAudit(tx, call, [auditEvent(MANAGED.api, api, "Created")]);
    return { apiId };
  });
}
