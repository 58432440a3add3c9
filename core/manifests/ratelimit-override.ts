import * as z from "zod";
import { durationOf } from "./duration.ts";
import {
  Adopt,
  deletionPolicy,
  NamespaceName,
  ObjectName,
  statusFields,
  storeId,
  unchangeable,
  withRules,
} from "./fields.ts";

/** A different limit for some identifiers of a rate-limit namespace. */
export const RatelimitOverrideSpec = withRules(
  z.strictObject({
    namespaceRef: z
      .strictObject({
        name: ObjectName.describe("metadata.name of a RatelimitNamespace."),
        namespace: NamespaceName.optional().describe(
          "The Kubernetes namespace of that RatelimitNamespace, if it is another one; its allowedNamespaces must list this one.",
        ),
      })
      .describe("The RatelimitNamespace that the override belongs to. It cannot be changed."),
    identifier: z
      .string()
      .min(1)
      .max(512)
      .describe(
        "The exact identifier, or a pattern in which each * stands for any run of characters. It cannot be changed.",
      ),
    limit: z.int().min(0).describe("How much may be used in one window; 0 refuses everything."),
    duration: durationOf({ msMin: 1000 }).describe("The length of the window, such as 60s; at least 1s."),
    async: z
      .boolean()
      .default(false)
      .describe(
        "Decide in each pod at once and sync counts in the background: faster, and may admit more than the limit between two syncs.",
      ),
    adopt: Adopt,
    deletionPolicy: deletionPolicy("Delete", "the override"),
  }),
  [
    unchangeable("namespaceRef", "an override cannot move to another namespace; make another one"),
    unchangeable("identifier", "an override's identifier cannot be changed; make another one"),
  ],
).describe("Another limit for some identifiers of a rate-limit namespace.");
export type RatelimitOverrideSpec = z.output<typeof RatelimitOverrideSpec>;

export const RatelimitOverrideStatus = z.object({
  ...statusFields,
  overrideId: storeId("the override"),
  namespaceId: storeId("the rate-limit namespace that the override belongs to"),
});
export type RatelimitOverrideStatus = z.output<typeof RatelimitOverrideStatus>;
