import type { Schema } from "../../../core/api/procedures.ts";
import { formatDuration } from "../../../core/manifests/from-store/format-duration.ts";
import type { Fields } from "../../fields.ts";

export const namespace = {
  type: "string",
  placeholder: "NAMESPACE",
  help: "rate-limit namespace: id, rlns_…, or name",
  required: true,
} as const;

export const identifier = {
  type: "string",
  placeholder: "TEXT",
  help: "identifier; * matches any characters",
  required: true,
} as const;

export const overrideFields: Fields<Schema<"RatelimitOverride">> = [
  { name: "overrideId", title: "id", value: (row) => row.overrideId, drops: true },
  // The identifier is never shortened, because `override get` and `override delete` take it as an argument.
  { name: "identifier", title: "identifier", value: (row) => row.identifier },
  { name: "limit", title: "limit", value: (row) => row.limit },
  { name: "duration", title: "per", value: (row) => row.duration, text: (row) => formatDuration(row.duration) },
];

export interface NamedOverride {
  readonly namespace: string;
  readonly identifier: string;
}

/** Fields of a deleted override; the API returns no others. */
export const namedOverrideFields: Fields<NamedOverride> = [
  { name: "namespace", value: (row) => row.namespace },
  { name: "identifier", value: (row) => row.identifier },
];
