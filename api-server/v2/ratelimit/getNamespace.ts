import * as z from "zod";
import { findNamespace } from "../../db/namespaces.ts";
import { onNamespace } from "../../domain/permissions/required-permissions.ts";
import { namespaceNotFound } from "../../domain/refusals/refusals.ts";
import { type Call, defineProcedure } from "../../procedure.ts";
import { Namespace, NamespaceOut, toNamespaceOut } from "./schemas.ts";

const Body = z.strictObject({ namespace: Namespace });
type Body = z.output<typeof Body>;

const required = { readNamespace: onNamespace("read_namespace") };

export const getNamespace = defineProcedure({
  path: "ratelimit.getNamespace",
  effect: "read",
  summary: "Read a rate-limit namespace",
  description: "Reads a live namespace by its id or name.",
  permissions: required,
  errors: ["ratelimit_namespace_not_found"],
  addition: true,
  body: Body,
  data: NamespaceOut,
  handle,
});

async function handle(call: Call<Body, typeof required>): Promise<NamespaceOut> {
  const { body, caller, deps } = call;
  const namespace = await findNamespace(deps.db, { workspaceId: caller.workspaceId, namespace: body.namespace });
  if (namespace === undefined) throw namespaceNotFound(body.namespace);
  call.require(required.readNamespace, namespace.id);
  return toNamespaceOut(namespace);
}
