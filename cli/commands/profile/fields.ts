import type { Fields } from "../../fields.ts";
import type { Profile } from "../../profiles.ts";

export const name = { type: "string", placeholder: "NAME", help: "profile name", required: true } as const;

export interface NamedProfile extends Omit<Profile, "rootKey"> {
  readonly name: string;
  readonly isCurrent: boolean;
}

/** Fields of a profile; the root key is not among them. */
export const profileFields: Fields<NamedProfile> = [
  { name: "name", title: "name", value: (row) => row.name },
  { name: "apiUrl", title: "server", value: (row) => row.apiUrl, shrinks: true },
  { name: "caFile", title: "authority", value: (row) => row.caFile ?? null, shrinks: true },
  { name: "current", title: "used", value: (row) => row.isCurrent, text: (row) => (row.isCurrent ? "yes" : "no") },
];
