import type { ReactNode } from "react";
import { useRead } from "../api/queries.ts";
import { OUTCOMES, outcomeInWords } from "../usage/series.ts";
import { Button } from "./button.tsx";
import type { FilterChip } from "./filter-menu.tsx";
import { Select } from "./select.tsx";
import "./usage-panel.css";

/* Filters that pages about usage share. The value comes from a URL parameter, so it can be one that is not in the list. */

const LISTED_MAX = 100;
const ANY = "";

interface FilterProps {
  readonly value: string | undefined;
  /** Called with an empty string to select all. */
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
export function RangeButtons<Name extends string>({
  names,
  wordsOf,
  range,
  onChange,
  children,
}: {
  names: readonly Name[];
  /** Returns a range in words, such as "the last hour". */
  wordsOf: (name: Name) => string;
  /** The selected range: the name of a preset, or a custom range. */
  range: unknown;
  onChange: (name: Name) => void;
  /** Further buttons. */
  children?: ReactNode;
}): ReactNode {
  return (
    <fieldset className="usage-ranges">
      <legend className="unseen">Time</legend>
      {names.map((name) => (
        <Button key={name} aria-pressed={range === name} title={wordsOf(name)} onClick={() => onChange(name)}>
          {name}
        </Button>
      ))}
      {children}
    </fieldset>
  );
}

/** Returns the chip of a filter; an empty list if the value is empty. */
export const chipOf = (name: string, value: string | undefined, onRemove: () => void): readonly FilterChip[] =>
  value === undefined || value === "" ? [] : [{ label: `${name}: ${value}`, onRemove }];
