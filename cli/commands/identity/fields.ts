import type { Schema } from "../../../core/api/procedures.ts";
import type { Fields } from "../../fields.ts";
import { ratelimitText } from "../new-ratelimit.ts";

export const identity = {
  type: "string",
  placeholder: "IDENTITY",
  help: "identity id, id_…, or external id",
  required: true,
} as const;

export const identityFields: Fields<Schema<"Identity">> = [
  { name: "identityId", title: "id", value: (row) => row.id },
  { name: "externalId", title: "external id", value: (row) => row.externalId, shrinks: true },
  {
    name: "ratelimits",
    title: "limits",
    value: (row) => row.ratelimits ?? [],
    text: (row) => (row.ratelimits ?? []).map(ratelimitText).join(", ") || "none",
    shrinks: true,
  },
  {
    name: "meta",
    title: "meta",
    value: (row) => row.meta ?? null,
    text: (row) => (row.meta === undefined ? "-" : JSON.stringify(row.meta)),
    shrinks: true,
  },
];

/** Fields of a created or deleted identity; the API returns no others. */
export const madeIdentityFields: Fields<{ readonly identityId: string; readonly externalId: string }> = [
  { name: "identityId", value: (row) => row.identityId },
  { name: "externalId", value: (row) => row.externalId },
];
export const namedIdentityFields: Fields<{ readonly identity: string }> = [
  { name: "identity", value: (row) => row.identity },
];
