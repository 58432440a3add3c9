import type { Condition } from "../../core/manifests/conditions.ts";
import { KINDS } from "../../core/manifests/index.ts";
import type { ManifestObject } from "../source/contract.ts";
import type { FurtherCondition } from "./plan.ts";
import { parseSpec } from "./spec.ts";

const SHOWN_MAX = 5;

/**
 * Returns the condition UnknownFields about unknown fields of the spec, which the operator ignores. Returns `undefined` if there are none
 * and never were, so that most objects do not have the condition. Pure.
 */
export function unknownFields(object: ManifestObject, previous: readonly Condition[]): FurtherCondition | undefined {
  const schema = KINDS.find(({ kind }) => kind === object.kind)?.specSchema;
  const unknown = schema === undefined ? [] : (parseSpec(schema, object).unknown ?? []);
  if (unknown.length > 0) {
    const shown = unknown.slice(0, SHOWN_MAX).join(", ");
    const more = unknown.length > SHOWN_MAX ? ` (and ${unknown.length - SHOWN_MAX} more)` : "";
    const message = `This operator does not support ${shown}${more} and ignores these fields. Upgrade the operator to the release of the CRDs, or remove the fields.`;
    return { type: "UnknownFields", status: "True", reason: "NewerSchema", message, alerts: true };
  }
  if (!previous.some(({ type }) => type === "UnknownFields")) return undefined;
  const message = "This operator supports every field of the spec.";
  return { type: "UnknownFields", status: "False", reason: "Succeeded", message, alerts: true };
}
