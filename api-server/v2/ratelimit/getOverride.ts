import * as z from "zod";
import { selectOverride } from "../../../core/ratelimits/overrides.ts";
import type { Queryable } from "../../../postgres/queryable.ts";
import { findNamespace } from "../../db/namespaces.ts";
import { findOverride, listOverridePatterns, type OverrideRef, type OverrideRow } from "../../db/overrides.ts";
import { onNamespace } from "../../domain/permissions/required-permissions.ts";
import { namespaceNotFound, overrideNotFound } from "../../domain/refusals/refusals.ts";
import { type Call, defineProcedure } from "../../procedure.ts";
import { Namespace, OverrideIdentifier, OverrideOut, toOverrideOut } from "./schemas.ts";

const Body = z.strictObject({ namespace: Namespace, identifier: OverrideIdentifier });
type Body = z.output<typeof Body>;

const required = { readOverride: onNamespace("read_override") };

export const getOverride = defineProcedure({
  path: "ratelimit.getOverride",
  effect: "read",
  summary: "Read the override that applies to an identifier",
  description:
    "Returns the override that `ratelimit.limit` applies: the one with exactly this identifier, otherwise the matching pattern with the most literal characters.",
  permissions: required,
  errors: ["ratelimit_namespace_not_found", "ratelimit_override_not_found"],
  body: Body,
  data: OverrideOut,
  handle,
});

async function handle(call: Call<Body, typeof required>): Promise<OverrideOut> {
  const { body, caller, deps } = call;
  const { workspaceId } = caller;
  const namespace = await findNamespace(deps.db, { workspaceId, namespace: body.namespace });
  if (namespace === undefined) throw namespaceNotFound(body.namespace);
  call.require(required.readOverride, namespace.id);
  const { identifier } = body;
  const override = await findActive(deps.db, { workspaceId, namespaceId: namespace.id, identifier });
  if (override === undefined) throw overrideNotFound(identifier);
  return toOverrideOut(override);
}

async function findActive(db: Queryable, ref: OverrideRef): Promise<OverrideRow | undefined> {
  const exact = await findOverride(db, ref);
  if (exact !== undefined) return exact;
  const patterns = await listOverridePatterns(db, ref);
  const selected = selectOverride(patterns.map(toRecord), ref.identifier);
  return patterns.find(({ id }) => id === selected?.id);
}

const toRecord = ({ id, identifier, max_count, duration_ms, async }: OverrideRow) => ({
  id,
  identifier,
  limit: max_count,
  durationMs: duration_ms,
  async,
});
