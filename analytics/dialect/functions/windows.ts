import { defaultOf, orDefault, typeName } from "../postgres/type-names.ts";
import type { Writer } from "../postgres/writer.ts";
import { invalidQuery } from "../problem.ts";
import { commonType } from "../resolve/common-type.ts";
import type { WindowCall } from "../resolve/resolved.ts";
import type { Docs } from "./entry.ts";

/** Function that is valid only with OVER. */
export interface WindowFunction {
  readonly docs: Docs;
  /** Minimum and maximum number of arguments. The result has the type of the first argument; without arguments, it is a UInt64. */
  readonly takes: readonly [number, number];
  /** Emits the Postgres call. `over` is the text `over (…)`. */
  readonly postgres: (call: WindowCall, over: string, writer: Writer) => string;
}

const rank = (name: string, meaning: string): WindowFunction => ({
  docs: [`${name}() OVER (ORDER BY x)`, meaning],
  takes: [0, 0],
  postgres: (_, over) => `${name}()${over}`,
});

/** `lag` and `lead`. For a row outside the partition, they return the default value that the call contains, or else the type's default. */
const neighbor = (name: "lag" | "lead", meaning: string): WindowFunction => ({
  docs: [`${name}(x) OVER (ORDER BY t)`, meaning],
  takes: [1, 3],
  postgres: ({ arguments: [value, offset, otherwise], type: own }, over, writer) => {
    if (!value) throw new TypeError(`${name} has no value`);
    const type = otherwise ? (commonType([value.type, otherwise.type]) ?? own) : own;
    const rows = offset?.kind === "literal" ? `${offset.value}` : "1";
    const beyond = otherwise ? writer.as(otherwise, type) : type.nullable ? `null::${typeName(type)}` : defaultOf(type);
    return `${name}(${writer.as(value, type)}, ${rows}, ${beyond})${over}`;
  },
});

const edge = (name: "first_value" | "last_value", meaning: string): WindowFunction => ({
  docs: [`${name}(x) OVER (ORDER BY t)`, meaning],
  takes: [1, 1],
  postgres: ({ arguments: [value], span, type }, over, writer) => {
    if (!value || value.type.nullable) throw invalidQuery(`${name} of nullable values is not supported`, span);
    return orDefault(`${name}(${writer.value(value)})${over}`, type);
  },
});

export const WINDOW_FUNCTIONS: Readonly<Record<string, WindowFunction>> = {
  row_number: rank("row_number", "Number of the row: 1, 2, 3."),
  rank: rank("rank", "Rank; equal rows have the same rank."),
  dense_rank: rank("dense_rank", "Rank without gaps."),
  lag: neighbor("lag", "Value in the previous row."),
  lead: neighbor("lead", "Value in the next row."),
  first_value: edge("first_value", "Value in the first row of the window."),
  last_value: edge("last_value", "Value in the last row of the window."),
};
