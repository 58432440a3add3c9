import type { ReactNode } from "react";
import { useRead } from "../api/queries.ts";
import { PRESET_NAMES, type Preset, type Range, wordsOfPreset } from "../usage/buckets.ts";
import { OUTCOMES, outcomeInWords } from "../usage/series.ts";
import { Button } from "./button.tsx";
import { Select } from "./select.tsx";

/* Filters that pages about usage share. The value is a parameter of the address, so it may be one that the list does not have. */

const LISTED_MAX = 100;
const ANY = "";

interface FilterProps {
  readonly value: string | undefined;
  /** Called with an empty text for all. */
  readonly onChange: (value: string) => void;
}

function FilterSelect({
  label,
  all,
  options,
  value = ANY,
  onChange,
}: FilterProps & {
  readonly label: string;
  readonly all: string;
  readonly options: readonly { readonly value: string; readonly label: string }[];
}): ReactNode {
  const isListed = value === ANY || options.some((option) => option.value === value);
  return (
    <Select
      label={label}
      value={value}
      options={[{ value: ANY, label: all }, ...options, ...(isListed ? [] : [{ value, label: value }])]}
      onChange={onChange}
    />
  );
}

/** Selects an API by its id. */
export function ApiSelect(props: FilterProps): ReactNode {
  const { data = [] } = useRead("admin.listApis", { limit: LISTED_MAX });
  return (
    <FilterSelect
      {...props}
      label="API"
      all="All APIs"
      options={data.map(({ apiId, name }) => ({ value: apiId, label: name }))}
    />
  );
}

/** Selects a namespace by its id. */
export function NamespaceSelect(props: FilterProps): ReactNode {
  const { data = [] } = useRead("admin.listNamespaces", { limit: LISTED_MAX });
  return (
    <FilterSelect
      {...props}
      label="Namespace"
      all="All namespaces"
      options={data.map(({ id, name }) => ({ value: id, label: name }))}
    />
  );
}

/** Selects an outcome of verifications. */
export function OutcomeSelect(props: FilterProps): ReactNode {
  const options = Object.keys(OUTCOMES).map((value) => ({ value, label: outcomeInWords(value) }));
  return <FilterSelect {...props} label="Outcome" all="All outcomes" options={options} />;
}

/** Buttons for the preset time ranges. */
export function RangeButtons({ range, onChange }: { range: Range; onChange: (range: Preset) => void }): ReactNode {
  return PRESET_NAMES.map((preset) => (
    <Button key={preset} aria-pressed={range === preset} title={wordsOfPreset(preset)} onClick={() => onChange(preset)}>
      {preset}
    </Button>
  ));
}
