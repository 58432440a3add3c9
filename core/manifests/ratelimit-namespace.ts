import * as z from "zod";
import {
  Adopt,
  AllowedNamespaces,
  deletionPolicy,
  nameOf,
  statusFields,
  storeId,
  unchangeable,
  withRules,
} from "./fields.ts";

/** A rate-limit namespace: limits in it share counters and overrides. */
export const RatelimitNamespaceSpec = withRules(
  z.strictObject({
    name: nameOf({ min: 1, max: 512 }).describe("Name for policies and ratelimit.* calls. Immutable."),
    adopt: Adopt,
    allowedNamespaces: AllowedNamespaces,
    deletionPolicy: deletionPolicy("Delete", "the rate-limit namespace with its overrides"),
  }),
  [unchangeable("name", "a rate-limit namespace cannot be renamed; create another one")],
).describe("Rate-limit namespace: policies and calls that name it share its limits and overrides.");
export type RatelimitNamespaceSpec = z.output<typeof RatelimitNamespaceSpec>;

export const RatelimitNamespaceStatus = z.object({ ...statusFields, namespaceId: storeId("the rate-limit namespace") });
export type RatelimitNamespaceStatus = z.output<typeof RatelimitNamespaceStatus>;
