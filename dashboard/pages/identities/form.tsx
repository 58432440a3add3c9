import { type ReactNode, useRef } from "react";
import type { Schema } from "../../../core/api/procedures.ts";
import { Button } from "../../components/button.tsx";
import { Checkbox } from "../../components/checkbox.tsx";
import { readJsonObject } from "../../components/json-object.ts";
import { CountField, DurationField } from "../../components/quantity-field.tsx";
import { TextField } from "../../components/text-field.tsx";
import "./identities.css";

/* Form input for an identity: its metadata as JSON, and its limits. */

export interface LimitDraft {
  /** Row id, which identifies the row while its name is edited. */
  readonly row: number;
  readonly name: string;
  readonly limit: number | undefined;
  /** In ms. */
  readonly duration: number | undefined;
  readonly autoApply: boolean;
}

export interface IdentityDraft {
  readonly meta: string;
  readonly limits: readonly LimitDraft[];
}

export const EMPTY: IdentityDraft = { meta: "", limits: [] };

const MINUTE_MS = 60_000;
const DURATION_MS_MIN = 1000;
const NAME_LENGTH_MIN = 3;

type Identity = Pick<Schema<"Identity">, "meta" | "ratelimits">;

export const draftOf = ({ meta, ratelimits = [] }: Identity): IdentityDraft => ({
  meta: meta === undefined ? "" : JSON.stringify(meta, null, 2),
  limits: ratelimits.map(({ name, limit, duration, autoApply }, row) => ({ row, name, limit, duration, autoApply })),
});

interface ReadDraft {
  readonly meta: Record<string, unknown>;
  readonly ratelimits: { name: string; limit: number; duration: number; autoApply: boolean }[];
}

/** Returns the request body, or the problems of the input. */
export function readDraft({ meta, limits }: IdentityDraft): ReadDraft | { readonly fault: string } {
  const read = metaIn(meta);
  if (read === undefined) return { fault: "The data is not a JSON object." };
  const ratelimits = [];
  for (const { name, limit, duration, autoApply } of limits) {
    if (name.trim().length < NAME_LENGTH_MIN)
      return { fault: `A limit's name has at least ${NAME_LENGTH_MIN} characters.` };
    if (limit === undefined || limit < 1) return { fault: `Limit ${name} requires at least 1 unit.` };
    if (duration === undefined || duration < DURATION_MS_MIN)
      return { fault: `Limit ${name} requires a window of at least 1s.` };
    ratelimits.push({ name: name.trim(), limit, duration, autoApply });
  }
  if (new Set(ratelimits.map(({ name }) => name)).size < ratelimits.length)
    return { fault: "Two limits have the same name." };
  return { meta: read, ratelimits };
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
  const { meta, limits } = draft;
  const lastRow = useRef(limits.length);
  const setLimit = (row: number, change: Partial<LimitDraft>): void =>
    onChange({ ...draft, limits: limits.map((limit) => (limit.row === row ? { ...limit, ...change } : limit)) });
  const add = (): void => {
    lastRow.current += 1;
    const limit = { row: lastRow.current, name: "", limit: undefined, duration: MINUTE_MS, autoApply: true };
    onChange({ ...draft, limits: [...limits, limit] });
  };
  return (
    <>
      <TextField
        label="Data"
        name="meta"
        value={meta}
        rows={5}
        isMono
        hint="A JSON object that verifications return, such as {&quot;plan&quot;: &quot;pro&quot;}. Leave it empty for no data."
        fault={metaIn(meta) === undefined ? "This is not a JSON object." : undefined}
        onChange={(text) => onChange({ ...draft, meta: text })}
      />
      <fieldset className="limits">
        <legend>Limits shared by all keys of the identity</legend>
        {limits.map(({ row, name, limit, duration, autoApply }) => (
          <div key={row} className="limit">
            <TextField label="Name" value={name} onChange={(text) => setLimit(row, { name: text })} lengthMax={128} />
            <CountField label="Units" value={limit} onChange={(value) => setLimit(row, { limit: value })} />
            <DurationField label="Window" value={duration} onChange={(value) => setLimit(row, { duration: value })} />
            <Checkbox
              label="Every verification"
              isChecked={autoApply}
              onChange={(isChecked) => setLimit(row, { autoApply: isChecked })}
            />
            <Button
              kind="quiet"
              aria-label={`Remove the limit ${name}`}
              onClick={() => onChange({ ...draft, limits: limits.filter((one) => one.row !== row) })}
            >
              Remove
            </Button>
          </div>
        ))}
        <Button onClick={add}>Add a limit</Button>
      </fieldset>
    </>
  );
}
