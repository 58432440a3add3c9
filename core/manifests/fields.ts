import * as z from "zod";
import { Conditions } from "./conditions.ts";

/** Fields that several kinds have. */

export const API_VERSION = "postern.dev/v1alpha1";
export const GROUP = "postern.dev";
export const VERSION = "v1alpha1";

const NAMESPACE_NAME = /^[a-z0-9]([a-z0-9-]*[a-z0-9])?$/;

export const NamespaceName = z.string().min(1).max(63).regex(NAMESPACE_NAME, { error: "expected a namespace's name" });
export const ObjectName = z
  .string()
  .min(1)
  .max(253)
  .regex(/^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/, { error: "expected an object's name" });

export const DeletionPolicy = z.enum(["Delete", "Orphan"]);
export type DeletionPolicy = z.infer<typeof DeletionPolicy>;

/** What happens to the stored object when the manifest is deleted. */
export const deletionPolicy = (byDefault: DeletionPolicy, what: string) =>
  DeletionPolicy.default(byDefault).describe(
    `What happens to ${what} when this object is deleted: Delete removes it, Orphan leaves it in the store, no longer managed.`,
  );

export const Adopt = z
  .enum(["match", "override"])
  .optional()
  .describe(
    "Whether an existing object of the store, made by other means, is taken over: match only if it equals this spec, override in any case. Without it the existing object is not changed and this one is Stalled.",
  );

export const AllowedNamespaces = z
  .array(NamespaceName)
  .max(64)
  .meta({ "x-kubernetes-list-type": "set" })
  .default([])
  .describe("Other namespaces whose objects may refer to what this object owns. Its own namespace always may.");

/** What every status has. */
export const statusFields = {
  conditions: Conditions.optional(),
  observedGeneration: z.int().min(0).optional().describe("The generation of the spec that this status describes."),
  lastSyncTime: z.iso
    .datetime()
    .optional()
    .describe("When the store was last compared with the spec and found or made equal."),
};

export const storeId = (what: string) => z.string().max(255).optional().describe(`The store's id of ${what}.`);

/** A rule over several fields, written twice side by side: in CEL for the Kubernetes API server, and as a function for all else. */
export interface Rule<T> {
  /** CEL; `self` is the value. A rule that names `oldSelf` forbids changes, which only the API server sees. */
  readonly rule: string;
  readonly message: string;
  readonly holds?: (value: T) => boolean;
}

/** Adds rules to a schema: checked when parsing, and copied into the CRD as `x-kubernetes-validations`. */
export function withRules<S extends z.ZodObject>(schema: S, rules: ReadonlyArray<Rule<z.output<S>>>): S {
  return schema
    .superRefine((value, context) => {
      for (const { message, holds } of rules) {
        if (holds !== undefined && !holds(value)) context.addIssue({ code: "custom", message });
      }
    })
    .meta({ "x-kubernetes-validations": rules.map(({ rule, message }) => ({ rule, message })) });
}

/** Exactly one of two optional fields is given. */
export function exactlyOneOf<A extends string, B extends string>(
  a: A,
  b: B,
): Rule<Readonly<Partial<Record<A | B, unknown>>>> {
  return {
    rule: `has(self.${a}) != has(self.${b})`,
    message: `exactly one of ${a} and ${b} is needed`,
    holds: (value) => (value[a] === undefined) !== (value[b] === undefined),
  };
}

export const unchangeable = (field: string, message: string): Rule<unknown> => ({
  rule: `self.${field} == oldSelf.${field}`,
  message,
});
