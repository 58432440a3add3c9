import type { Span } from "../tree.ts";
import { commonType } from "./common-type.ts";
import { refusal } from "./refusal.ts";
import type { Aggregate, ResolvedExpression, ResolvedFrame, ResolvedOrder, WindowCall } from "./resolved.ts";
import { isNumeric, type Type, typeText, UINT64 } from "./types.ts";

type RankName = Exclude<WindowCall["name"], Aggregate["name"]>;

interface Described {
  /** Minimum and maximum argument count. */
  readonly takes: readonly [number, number];
}

const FUNCTIONS: Readonly<Record<RankName, Described>> = {
  row_number: { takes: [0, 0] },
  rank: { takes: [0, 0] },
  dense_rank: { takes: [0, 0] },
  lag: { takes: [1, 3] },
  lead: { takes: [1, 3] },
  first_value: { takes: [1, 1] },
  last_value: { takes: [1, 1] },
};

/** Returns the function with this lower-case name that is valid only with a window. */
export const windowNamed = (lowerName: string): RankName | undefined =>
  Object.hasOwn(FUNCTIONS, lowerName) ? (lowerName as RankName) : undefined;

export interface WindowCalled {
  readonly written: string;
  readonly name: RankName | undefined;
  readonly aggregate: Aggregate | undefined;
  readonly args: readonly ResolvedExpression[];
  readonly span: Span;
}

export interface ResolvedWindow {
  readonly partitionBy: readonly ResolvedExpression[];
  readonly orderBy: readonly ResolvedOrder[];
  readonly frame: (ResolvedFrame & { readonly span: Span }) | undefined;
}

/** @throws QueryProblem if the function or its window is invalid. */
export function windowCall(called: WindowCalled, window: ResolvedWindow): WindowCall {
  checkFrame(window);
  const { aggregate, span } = called;
  const { partitionBy, orderBy } = window;
  const frame = window.frame && { unit: window.frame.unit, start: window.frame.start, end: window.frame.end };
  if (aggregate) {
    if (aggregate.distinct) throw refusal("DISTINCT is not supported over a window", span);
    const { name, parameters, filter, type } = aggregate;
    return {
      kind: "window",
      name,
      parameters,
      arguments: aggregate.arguments,
      filter,
      partitionBy,
      orderBy,
      frame,
      type,
      span,
    };
  }
  const { name, type } = ranked(called);
  return {
    kind: "window",
    name,
    parameters: [],
    arguments: called.args,
    filter: undefined,
    partitionBy,
    orderBy,
    frame,
    type,
    span,
  };
}

function ranked({ name, written, args, span }: WindowCalled): { readonly name: RankName; readonly type: Type } {
  if (!name) throw refusal(`${written} cannot be used over a window`, span);
  const [least, most] = FUNCTIONS[name].takes;
  if (args.length < least || args.length > most)
    throw refusal(`${written} does not take ${args.length} arguments`, span);
  const [value, offset, otherwise] = args;
  if (offset && !(offset.kind === "literal" && typeof offset.value === "bigint" && offset.value >= 0n)) {
    throw refusal(`${written} takes a whole number of rows, written as a literal`, offset.span);
  }
  if (!value) return { name, type: UINT64 };
  const type = otherwise ? commonType([value.type, otherwise.type]) : value.type;
  if (!type) throw refusal(`no type holds ${typeText(value.type)} and ${otherwise && typeText(otherwise.type)}`, span);
  return { name, type };
}

/** Bounds of RANGE are offsets from the single ORDER BY value. */
function checkFrame({ orderBy, frame }: ResolvedWindow): void {
  if (!frame || frame.unit === "rows") return;
  const hasDistance = "by" in frame.start || "by" in frame.end;
  const [order, ...more] = orderBy;
  if (hasDistance && (!order || more.length > 0 || !isNumeric(order.expression.type))) {
    throw refusal("RANGE with a distance needs one number in ORDER BY", frame.span);
  }
}
