import type { ReactNode } from "react";
import type { Schema } from "../../../core/api/procedures.ts";
import { readJsonObject } from "../../components/json-object.ts";
import { draftsOf, type LimitDraft, limitsOf, limitsProblem } from "../../components/limit-draft.ts";
import { LimitFields } from "../../components/limit-fields.tsx";
import { TextField } from "../../components/text-field.tsx";

/* Form input for an identity: its metadata as JSON, and its limits. */

export interface IdentityDraft {
  readonly meta: string;
  readonly limits: readonly LimitDraft[];
}

export const EMPTY: IdentityDraft = { meta: "", limits: [] };

type Identity = Pick<Schema<"Identity">, "meta" | "ratelimits">;

export const draftOf = ({ meta, ratelimits = [] }: Identity): IdentityDraft => ({
  meta: meta === undefined ? "" : JSON.stringify(meta, null, 2),
  limits: draftsOf(ratelimits),
});

interface ReadDraft {
  readonly meta: Record<string, unknown>;
  readonly ratelimits: { name: string; limit: number; duration: number; autoApply: boolean }[];
}

/** Returns the request body, or the problems of the input. */
export function readDraft({ meta, limits }: IdentityDraft): ReadDraft | { readonly fault: string } {
  const read = metaIn(meta);
  if (read === undefined) return { fault: "The data is not a JSON object." };
  const fault = limitsProblem(limits);
  return fault === undefined ? { meta: read, ratelimits: limitsOf(limits) } : { fault };
}

/** An empty text means no metadata. */
const metaIn = (text: string): Record<string, unknown> | undefined => (text.trim() === "" ? {} : readJsonObject(text));

export function IdentityFields({
  draft,
  onChange,
}: {
  draft: IdentityDraft;
  onChange: (draft: IdentityDraft) => void;
}): ReactNode {
  return (
    <>
      <LimitFields
        legend="Limits shared by all keys of the identity"
        limits={draft.limits}
        onChange={(limits) => onChange({ ...draft, limits })}
      />
      <TextField
        label="Meta"
        name="meta"
        value={draft.meta}
        rows={5}
        isMono
        hint="A JSON object that verifications return, such as {&quot;plan&quot;: &quot;pro&quot;}. Leave it empty for no data."
        fault={metaIn(draft.meta) === undefined ? "This is not a JSON object." : undefined}
        onChange={(meta) => onChange({ ...draft, meta })}
      />
    </>
  );
}
