import { invalidQuery } from "../problem.ts";
import { Identities } from "../resolve/identity.ts";
import type { ResolvedFill, ResolvedOrder, ResolvedSelect } from "../resolve/resolved.ts";
import type { Type } from "../resolve/types.ts";
import { isDate, isInteger, typeText, zoneOf } from "../resolve/types.ts";
import { byDays } from "./arithmetic.ts";
import { mayBeNaN } from "./nan.ts";
import { defaultOf, typeName } from "./type-names.ts";
import type { Writer } from "./writer.ts";

/*
 * Implements WITH FILL: keeps all rows and adds a row, with defaults in the other columns, for each missing step from FROM (or the first
 * row) to TO (or the last row). ORDER BY columns before the filled one partition the rows, and each partition is filled separately.
 *
 * `b` are the rows with columns c1, c2, … and sort keys k1, k2, …; `g` are the partitions, and `s` the steps of each partition.
 */

export interface Filled {
  readonly select: ResolvedSelect;
  readonly types: readonly Type[];
  /** SELECT of the rows with columns c1, … and k1, …. */
  readonly rows: string;
}

export const hasFill = ({ orderBy }: ResolvedSelect): boolean => orderBy.some(({ fill }) => fill !== undefined);

/** Column name of the sort key at an index. */
export const keyName = (place: number): string => `k${place + 1}`;

/** Emits a SELECT of the original and the added rows in order. */
export function filledSql({ select, types, rows }: Filled, writer: Writer): string {
  const { orderBy, columns } = select;
  const at = orderBy.findIndex(({ fill }) => fill !== undefined);
  const order = orderBy[at];
  if (!order?.fill) throw new TypeError("nothing is filled");
  if (orderBy.filter(({ fill }) => fill).length > 1) throw invalidQuery("one WITH FILL is supported", order.fill.span);
  const wrong = orderBy.find(({ expression }) => mayBeNaN(expression));
  if (wrong) throw invalidQuery("WITH FILL beside floats that can be NaN is not supported", wrong.expression.span);
  const steps = stepsOf(order, order.fill, writer);
  const outputs = columns.map((_, index) => `c${index + 1}`);
  const keys = orderBy.map((_, index) => keyName(index));
  const added = [...addedColumns({ select, types, at, value: steps.value }), ...addedKeys(orderBy, at, steps.value)];
  const same = keys.slice(0, at).map((key) => ` and b.${key} is not distinct from g.${key}`);
  return [
    `select ${outputs.map((name) => `u.${name}`).join(", ")} from (with b as materialized (${rows})`,
    `select ${[...outputs, ...keys].map((name) => `b.${name}`).join(", ")} from b`,
    `union all select ${added.join(", ")} from (${partsSql(keys.slice(0, at), keyName(at))}) as g`,
    `cross join lateral ${steps.series} as s(k) where ${steps.before}`,
    `and not exists (select from b where b.${keyName(at)} = ${steps.value}${same.join("")})) as u`,
    `order by ${orderBy.map((one, index) => directed(`u.${keyName(index)}`, one)).join(", ")}`,
  ].join(" ");
}

const directed = (key: string, { descending, nullsFirst }: ResolvedOrder): string =>
  `${key} ${descending ? "desc" : "asc"} nulls ${nullsFirst ? "first" : "last"}`;

const partsSql = (prefix: readonly string[], filled: string): string => {
  const keys = prefix.map((key) => `b.${key}`).join(", ");
  const bounds = `min(b.${filled}) as least, max(b.${filled}) as greatest`;
  return keys === "" ? `select ${bounds} from b` : `select ${keys}, ${bounds} from b group by ${keys}`;
};

interface Steps {
  readonly series: string;
  /** Step, converted to the type of the filled expression. */
  readonly value: string;
  /** Condition that excludes steps at or after the end. */
  readonly before: string;
}

function stepsOf({ expression, descending }: ResolvedOrder, fill: ResolvedFill, writer: Writer): Steps {
  const { type } = expression;
  const [first, last] = descending ? ["g.greatest", "g.least"] : ["g.least", "g.greatest"];
  const from = fill.from ? writer.as(fill.from, type) : first;
  const to = fill.to ? writer.as(fill.to, type) : last;
  const sign = descending ? ">" : "<";
  if (isInteger(type)) {
    const step = fill.step ? writer.value(fill.step) : writer.parameters.bigint(descending ? -1n : 1n);
    return { series: `generate_series(${from}, ${to}, ${step})`, value: "s.k", before: `s.k ${sign} ${to}` };
  }
  if (!isDate(type)) throw invalidQuery(`WITH FILL of ${typeText(type)} is not supported`, expression.span);
  const unit = `interval '1 ${type.name === "Date" ? "day" : "second"}'`;
  const step =
    fill.step?.type.name === "Interval"
      ? writer.value(fill.step)
      : `${fill.step ? writer.value(fill.step) : descending ? "-1" : "1"} * ${unit}`;
  const zone = fill.step && byDays(fill.step) ? zoneOf(type) : undefined;
  return {
    series:
      zone === undefined
        ? `generate_series(${from}::timestamp, ${to}::timestamp, ${step})`
        : `analytics.zoned_steps(${from}, ${to}, ${step}, ${writer.parameters.text(zone)})`,
    value: type.name === "Date" ? "s.k::date" : "s.k",
    before: `s.k ${sign} ${to}`,
  };
}

/**
 * Emits the columns of a row added by WITH FILL. The filled sort key gets the value of the step, the sort keys before it get the values of
 * the partition, and all other columns get the default of their type.
 */
function addedColumns({
  select: { columns, orderBy },
  types,
  at,
  value,
}: Pick<Filled, "select" | "types"> & { readonly at: number; readonly value: string }): string[] {
  const identities = new Identities();
  const keys = orderBy.slice(0, at + 1).map(({ expression }) => identities.of(expression));
  return columns.map((column, index) => {
    const type = types[index] ?? column.type;
    const key = keys.indexOf(identities.of(column));
    if (key === -1) return missing(type);
    return `${key === at ? value : `g.${keyName(key)}`}::${typeName(type)}`;
  });
}

function addedKeys(orderBy: readonly ResolvedOrder[], at: number, value: string): string[] {
  return orderBy.map(({ expression }, index) =>
    index === at ? value : index < at ? `g.${keyName(index)}` : missing(expression.type),
  );
}

const missing = (type: Type): string => (type.nullable ? `null::${typeName(type)}` : defaultOf(type));
