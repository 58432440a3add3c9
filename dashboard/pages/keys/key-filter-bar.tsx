import { type ReactNode, useState } from "react";
import { Combobox } from "../../components/combobox.tsx";
import { type FilterChip, FilterMenu } from "../../components/filter-menu.tsx";
import { APIS } from "../../components/picker-sources.ts";
import { SearchField } from "../../components/search-field.tsx";
import { Select } from "../../components/select.tsx";
import { useChoices } from "../../components/use-options.ts";
import { type KeyFilters, type Match, matchInWords } from "./filters.ts";
import { KeySearch } from "./key-search.tsx";

const BY = [
  { value: "name", label: "Name" },
  { value: "owner", label: "Owner" },
  { value: "start", label: "Start of the key" },
  { value: "keyId", label: "Key id" },
  { value: "secret", label: "Complete key" },
] as const;

const EXPIRES_TEXT = {
  "7d": "Expires within 7 days",
  "30d": "Expires within 30 days",
  "90d": "Expires within 90 days",
} as const;
const CREDITS_TEXT = { yes: "With credits", no: "Unlimited" } as const;
const MANAGED_TEXT = { yes: "Managed by a manifest", no: "Not managed" } as const;

const SECRET_HINT = "This page hashes the key; it neither sends nor stores the key itself.";

/** A change of the filters; `undefined` removes a filter. */
export type FilterChange = { readonly [Name in keyof KeyFilters]?: KeyFilters[Name] | undefined };

export function KeyFilterBar({
  filters,
  apiName,
  onChange,
  onKeyId,
}: {
  filters: KeyFilters;
  /** Name of the selected API. */
  apiName: string | undefined;
  onChange: (change: FilterChange) => void;
  onKeyId: (keyId: string) => void;
}): ReactNode {
  const { by = "name", q = "", api } = filters;
  const [isSecret, setSecret] = useState(false);
  const { only: _, ...apis } = useChoices(
    APIS,
    api === undefined ? undefined : { value: api, label: apiName ?? api, note: api },
  );
  return (
    <search className="key-filters">
      <Select<Match | "secret">
        label="Search by"
        value={isSecret ? "secret" : by}
        options={BY}
        onChange={(chosen) => {
          setSecret(chosen === "secret");
          onChange(chosen === "secret" ? { q: undefined } : { by: chosen });
        }}
      />
      <KeySearch
        key={isSecret ? "secret" : "text"}
        label={isSecret ? "Complete key" : "Search, or paste a complete key"}
        hint={
          isSecret
            ? SECRET_HINT
            : `${matchInWords(by, api !== undefined)} A pasted key is hashed in this page and not sent.`
        }
        value={q}
        isSecret={isSecret}
        onText={(text) => onChange({ q: text === "" ? undefined : text })}
        onKeyId={onKeyId}
      />
      <FilterMenu chips={chipsOf(filters, apiName, onChange)}>
        <Combobox
          label="API"
          placeholder="All APIs that you may read"
          {...apis}
          value={api ?? null}
          onChange={(chosen) => onChange({ api: chosen ?? undefined })}
        />
        <Select
          label="State"
          value={filters.state ?? "any"}
          options={[
            { value: "any", label: "Any" },
            { value: "enabled", label: "Enabled" },
            { value: "disabled", label: "Disabled" },
            { value: "expired", label: "Expired" },
          ]}
          onChange={(state) => onChange({ state: state === "any" ? undefined : state })}
        />
        <Select
          label="Expiry"
          value={filters.expires ?? "any"}
          options={[
            { value: "any", label: "Any" },
            { value: "7d", label: EXPIRES_TEXT["7d"] },
            { value: "30d", label: EXPIRES_TEXT["30d"] },
            { value: "90d", label: EXPIRES_TEXT["90d"] },
          ]}
          onChange={(expires) => onChange({ expires: expires === "any" ? undefined : expires })}
        />
        <Select
          label="Credits"
          value={filters.credits ?? "any"}
          options={[
            { value: "any", label: "Any" },
            { value: "yes", label: CREDITS_TEXT.yes },
            { value: "no", label: CREDITS_TEXT.no },
          ]}
          onChange={(credits) => onChange({ credits: credits === "any" ? undefined : credits })}
        />
        <Select
          label="Manifest"
          value={filters.managed ?? "any"}
          options={[
            { value: "any", label: "Any" },
            { value: "yes", label: MANAGED_TEXT.yes },
            { value: "no", label: MANAGED_TEXT.no },
          ]}
          onChange={(managed) => onChange({ managed: managed === "any" ? undefined : managed })}
        />
        <SearchField
          label="Role"
          value={filters.role ?? ""}
          onChange={(role) => onChange({ role: role.trim() === "" ? undefined : role.trim() })}
        />
        <SearchField
          label="Permission"
          value={filters.permission ?? ""}
          onChange={(slug) => onChange({ permission: slug.trim() === "" ? undefined : slug.trim() })}
        />
      </FilterMenu>
    </search>
  );
}

/** Returns the chips of the filters that are set. The search text has its own field. */
function chipsOf(
  { api, state, expires, credits, managed, role, permission }: KeyFilters,
  apiName: string | undefined,
  onChange: (change: FilterChange) => void,
): readonly FilterChip[] {
  const chip = (name: keyof KeyFilters, label: string): FilterChip => ({
    label,
    onRemove: () => onChange({ [name]: undefined }),
  });
  return [
    ...(api === undefined ? [] : [chip("api", `API: ${apiName ?? api}`)]),
    ...(state === undefined ? [] : [chip("state", `State: ${state}`)]),
    ...(expires === undefined ? [] : [chip("expires", EXPIRES_TEXT[expires])]),
    ...(credits === undefined ? [] : [chip("credits", CREDITS_TEXT[credits])]),
    ...(managed === undefined ? [] : [chip("managed", MANAGED_TEXT[managed])]),
    ...(role === undefined ? [] : [chip("role", `Role: ${role}`)]),
    ...(permission === undefined ? [] : [chip("permission", `Permission: ${permission}`)]),
  ];
}
