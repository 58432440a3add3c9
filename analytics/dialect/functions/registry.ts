import { AGGREGATE_FUNCTIONS, type AggregateFunction } from "./aggregates.ts";
import { ARRAY_FUNCTIONS } from "./arrays.ts";
import { CONDITIONAL_FUNCTIONS } from "./conditions.ts";
import type { ScalarFunction } from "./entry.ts";
import { NUMBER_FUNCTIONS } from "./numbers.ts";
import { OPERATORS } from "./operators.ts";
import { TEXT_FUNCTIONS } from "./text.ts";
import { TIME_FUNCTIONS, TO_INTERVAL, TO_TIME_ZONE } from "./time.ts";
import { WINDOW_FUNCTIONS, type WindowFunction } from "./windows.ts";

/*
 * All functions that queries may call (api-v2.md section 18.2), by their ClickHouse names. Names in a query are case-insensitive. The tree
 * keeps the caller's spelling, because ClickHouse uses this spelling in column names.
 */

const BY_KIND = {
  /** Aggregate functions, which read the rows of a group. */
  aggregate: AGGREGATE_FUNCTIONS,
  /** Window functions, which read the rows of a window. */
  window: WINDOW_FUNCTIONS,
  time: TIME_FUNCTIONS,
  text: TEXT_FUNCTIONS,
  number: NUMBER_FUNCTIONS,
  condition: CONDITIONAL_FUNCTIONS,
  /** Array functions, which read the elements of an array. */
  array: ARRAY_FUNCTIONS,
} as const;

export type FunctionKind = keyof typeof BY_KIND;

/** Row of the function tables in docs/reference/analytics.md. */
export interface FunctionDocs {
  readonly name: string;
  readonly kind: FunctionKind;
  readonly call: string;
  readonly meaning: string;
}

export const FUNCTION_DOCS: readonly FunctionDocs[] = (Object.keys(BY_KIND) as FunctionKind[]).flatMap((kind) =>
  Object.entries<{ readonly docs?: readonly [string, string] }>(BY_KIND[kind]).flatMap(([name, { docs }]) =>
    docs ? [{ name, kind, call: docs[0], meaning: docs[1] }] : [],
  ),
);

const PUBLISHED: ReadonlyMap<string, string> = new Map(FUNCTION_DOCS.map(({ name }) => [name.toLowerCase(), name]));

/** Returns the ClickHouse spelling of a function name; `undefined` for an unsupported function. */
export const publishedFunction = (written: string): string | undefined => PUBLISHED.get(written.toLowerCase());

const SCALARS: ReadonlyMap<string, ScalarFunction> = new Map(
  Object.entries({
    ...OPERATORS,
    ...TIME_FUNCTIONS,
    ...TEXT_FUNCTIONS,
    ...NUMBER_FUNCTIONS,
    ...CONDITIONAL_FUNCTIONS,
    ...ARRAY_FUNCTIONS,
    toInterval: TO_INTERVAL,
    toTimeZone: TO_TIME_ZONE,
  }),
);
const AGGREGATES: ReadonlyMap<string, AggregateFunction> = new Map(Object.entries(AGGREGATE_FUNCTIONS));
const WINDOWS: ReadonlyMap<string, WindowFunction> = new Map(Object.entries(WINDOW_FUNCTIONS));

/* Lookups of functions. They take the ClickHouse spelling of a name. */

/** @throws TypeError if the function does not exist. Check this first with `publishedFunction`, which does not throw. */
export function scalarFunction(name: string): ScalarFunction {
  const found = SCALARS.get(name);
  if (!found) throw new TypeError(`there is no function ${name}`);
  return found;
}

export const aggregateFunction = (name: string): AggregateFunction | undefined => AGGREGATES.get(name);
export const windowFunction = (name: string): WindowFunction | undefined => WINDOWS.get(name);
