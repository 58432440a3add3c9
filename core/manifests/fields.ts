import * as z from "zod";
import { Conditions } from "./conditions.ts";

/** Fields that several kinds have. */

export const API_VERSION = "postern.dev/v1alpha1";
export const GROUP = "postern.dev";
export const VERSION = "v1alpha1";

const NAMESPACE_NAME = /^[a-z0-9]([a-z0-9-]*[a-z0-9])?$/;

export const NamespaceName = z
  .string()
  .min(1)
  .max(63)
  .regex(NAMESPACE_NAME, { error: "expected the name of a namespace" });
export const ObjectName = z
  .string()
  .min(1)
  // `abort` skips the regular expression if the text is too long, because matching megabytes of text would overflow the stack.
  .max(253, { abort: true })
  .regex(/^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/, {
    error: "expected the name of an object",
  });

/** Name of an HTTP header (RFC 9110, section 5.1). */
export const HeaderName = z
  .string()
  .min(1)
  .max(128)
  .regex(/^[A-Za-z0-9!#$%&'*+.^_`|~-]+$/, { error: "expected the name of a header" });

export const DeletionPolicy = z.enum(["Delete", "Orphan"]);
export type DeletionPolicy = z.infer<typeof DeletionPolicy>;

/**
 * Rejects names that consist of white space only. The pattern lists the characters, because the meaning of `\\s` differs between JavaScript
 * and Go.
 */
const NOT_BLANK = /[^\t\n\v\f\r \u0085\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff]/;

/** A display name or stored name: any text with at least one character other than white space. */
export const nameOf = ({ min, max }: { min: number; max: number }) =>
  z.string().min(min).max(max).regex(NOT_BLANK, { error: "must not consist only of white space" });

/** Returns an error for each item that repeats the key of an earlier one. */
export function repeated<Item>(items: readonly Item[], keyOf: (item: Item, index: number) => string, message: string) {
  const seen = new Set<string>();
  return items.flatMap((item, index) => {
    const key = keyOf(item, index);
    if (seen.has(key)) return [{ path: [index], message }];
    seen.add(key);
    return [];
  });
}

/** A list of distinct items. The Kubernetes API server merges it by item. */
export const setOf = <Item extends z.ZodType<string>>(item: Item, max: number) =>
  z
    .array(item)
    .max(max)
    .superRefine((items, context) => {
      for (const { path, message } of repeated(items, (item) => item, "occurs more than once")) {
        context.addIssue({ code: "custom", path, message });
      }
    })
    .meta({ "x-kubernetes-list-type": "set" });

const LABEL_NAME = "([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)";
const LABEL_PREFIX = "([a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*[/])?";
const LABEL_KEY = `^${LABEL_PREFIX}${LABEL_NAME}$`;
const LABEL_PREFIX_LENGTH_MAX = 253;
const LABEL_KEY_LENGTH_MAX = LABEL_PREFIX_LENGTH_MAX + "/".length + 63;
const LABELS_MAX = 32;

const isLabelKey = (key: string): boolean =>
  key.length <= LABEL_KEY_LENGTH_MAX &&
  new RegExp(LABEL_KEY).test(key) &&
  key.lastIndexOf("/") <= LABEL_PREFIX_LENGTH_MAX;

const LABEL_KEY_TEXT =
  "the key of a label has 1 to 63 letters, digits and - _ . and begins and ends with a letter or digit, after an optional DNS name and /";

const LabelKey = z.string().refine(isLabelKey, { error: LABEL_KEY_TEXT });
const LabelValue = z
  .string()
  .max(63)
  .regex(/^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$/, { error: "expected the value of a label" });

/** Labels, all of which a pod must have. At least one label is required, because an empty selector would match every pod. */
export const LabelsToMatch = z
  .record(LabelKey, LabelValue)
  .superRefine((labels, context) => {
    const count = Object.keys(labels).length;
    if (count === 0) context.addIssue({ code: "custom", message: "expected at least one label" });
    if (count > LABELS_MAX) context.addIssue({ code: "custom", message: `expected at most ${LABELS_MAX} labels` });
  })
  .meta({
    minProperties: 1,
    maxProperties: LABELS_MAX,
    "x-kubernetes-validations": [
      {
        rule: `self.all(key, key.matches('${LABEL_KEY}') && key.split('/')[0].size() <= ${LABEL_PREFIX_LENGTH_MAX})`,
        message: LABEL_KEY_TEXT,
      },
    ],
  });

/** Labels of an object itself, which the Kubernetes API server validates for every kind. */
export const ObjectLabels = z.record(LabelKey, LabelValue);
/** Annotations of an object. The Kubernetes API server validates their keys; the prefix of a key may contain capitals. */
export const ObjectAnnotations = z.record(
  z.string().refine((key) => isLabelKey(key.replace(/^[^/]*[/]/, (prefix) => prefix.toLowerCase())), {
    error: "expected the key of an annotation, in the format of label keys",
  }),
  z.string(),
);

/** Schema of the field that defines what happens to the stored object when its manifest is deleted. */
export const deletionPolicy = (byDefault: DeletionPolicy, what: string) =>
  DeletionPolicy.default(byDefault).describe(
    `Effect of deleting this object on ${what}: Delete removes it, Orphan keeps it unmanaged.`,
  );

export const Adopt = z
  .enum(["Match", "Override"])
  .optional()
  .describe(
    "Whether this object adopts an existing unmanaged one: Match only if it equals the spec, Override in any case. Without it, the existing object stays unchanged and this one is Stalled.",
  );

export const AllowedNamespaces = setOf(NamespaceName, 64)
  .default([])
  .describe("Other namespaces whose objects may refer to this one.");

/** Fields that the status of every kind has. */
export const statusFields = {
  conditions: Conditions.optional(),
  observedGeneration: z.int().min(0).optional().describe("Generation of the spec that the status describes."),
};

export const storeId = (what: string) => z.string().max(255).optional().describe(`Id of ${what}.`);

/** A rule over several fields, written twice: in CEL for the Kubernetes API server, and as a TypeScript function for everything else. */
export interface Rule<T> {
  /** CEL expression; `self` is the value. A rule that uses `oldSelf` restricts changes, and only the API server can check it. */
  readonly rule: string;
  readonly message: string;
  /** The field to which the Kubernetes API server attributes a violation. */
  readonly fieldPath?: string;
  readonly holds?: (value: T) => boolean;
  /** Alternative to `holds`: returns each location within the value that violates the rule, so that each is reported separately. */
  readonly faults?: (
    value: T,
  ) => ReadonlyArray<{ readonly path: ReadonlyArray<string | number>; readonly message: string }>;
}

/** Adds rules to a schema. Parsing checks them, and the CRD contains them as `x-kubernetes-validations`. */
export function withRules<S extends z.ZodType>(schema: S, rules: ReadonlyArray<Rule<z.output<S>>>): S {
  return schema
    .superRefine((value, context) => {
      for (const { message, holds, faults } of rules) {
        if (holds !== undefined && !holds(value)) context.addIssue({ code: "custom", message });
        for (const fault of faults?.(value) ?? []) {
          context.addIssue({ code: "custom", path: [...fault.path], message: fault.message });
        }
      }
    })
    .meta({
      "x-kubernetes-validations": rules.map(({ rule, message, fieldPath }) => ({
        rule,
        message,
        ...(fieldPath === undefined ? {} : { fieldPath }),
      })),
    });
}

/** Rule that requires exactly one of the optional fields. */
export function exactlyOneOf<Field extends string>(
  ...fields: readonly [Field, Field, ...Field[]]
): Rule<Readonly<Partial<Record<Field, unknown>>>> {
  const isSet = fields.map((field) => `has(self.${field})`);
  return {
    rule: fields.length === 2 ? isSet.join(" != ") : `${isSet.map((one) => `(${one} ? 1 : 0)`).join(" + ")} == 1`,
    message: `exactly one of ${fields.slice(0, -1).join(", ")} and ${fields.at(-1)} is required`,
    holds: (value) => fields.filter((field) => value[field] !== undefined).length === 1,
  };
}

export const unchangeable = (field: string, message: string): Rule<unknown> => ({
  rule: `self.${field} == oldSelf.${field}`,
  message,
});
