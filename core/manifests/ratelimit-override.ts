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
          "Kubernetes namespace of the RatelimitNamespace; its allowedNamespaces must list this one. Default: the namespace of this object.",
        ),
      })
      .describe("RatelimitNamespace that contains the override. Immutable."),
    identifier: z
      .string()
      .min(1)
      .max(512)
      .describe("Exact identifier, or a pattern in which * matches any number of characters. Immutable."),
    limit: z.int().min(0).describe("Maximum usage per window; 0 rejects every request."),
    duration: durationOf({ msMin: 1000 }).describe("Length of the window."),
    async: z
      .boolean()
      .default(false)
      .describe(
        "Whether each pod decides locally and synchronizes in the background: faster, but may admit more than the limit between two synchronizations.",
      ),
    adopt: Adopt,
    deletionPolicy: deletionPolicy("Delete", "the override"),
  }),
  [
    unchangeable("namespaceRef", "an override cannot move to another namespace; create another one"),
    unchangeable("identifier", "the identifier of an override cannot be changed; create another override"),
  ],
).describe("Different limit for some identifiers of a rate-limit namespace.");
export type RatelimitOverrideSpec = z.output<typeof RatelimitOverrideSpec>;

export const RatelimitOverrideStatus = z.object({
  ...statusFields,
  overrideId: storeId("the override"),
  namespaceId: storeId("its rate-limit namespace"),
});
export type RatelimitOverrideStatus = z.output<typeof RatelimitOverrideStatus>;
