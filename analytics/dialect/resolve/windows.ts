import { windowFunction } from "../functions/registry.ts";
import { invalidQuery } from "../problem.ts";
import type { Span } from "../tree.ts";
import { commonType } from "./common-type.ts";
import type { Aggregate, ResolvedExpression, ResolvedFrame, ResolvedOrder, WindowCall } from "./resolved.ts";
import { isNumeric, type Type, typeText, UINT64 } from "./types.ts";

export interface WindowCalled {
  readonly written: string;
  /** ClickHouse spelling of the name. */
  readonly name: string;
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
    if (aggregate.distinct) throw invalidQuery("DISTINCT is not supported over a window", span);
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

function ranked({ name, written, args, span }: WindowCalled): { readonly name: string; readonly type: Type } {
  const entry = windowFunction(name);
  if (!entry) throw invalidQuery(`${written} cannot be used over a window`, span);
  const [least, most] = entry.takes;
  if (args.length < least || args.length > most)
    throw invalidQuery(`${written} does not take ${args.length} arguments`, span);
  const [value, offset, otherwise] = args;
  if (offset && !(offset.kind === "literal" && typeof offset.value === "bigint" && offset.value >= 0n)) {
    throw invalidQuery(`${written} takes a whole number of rows, written as a literal`, offset.span);
  }
  if (!value) return { name, type: UINT64 };
  const type = otherwise ? commonType([value.type, otherwise.type]) : value.type;
  if (!type)
    throw invalidQuery(`no type holds ${typeText(value.type)} and ${otherwise && typeText(otherwise.type)}`, span);
  return { name, type };
}

/** Checks a frame. Bounds of RANGE are offsets from the single ORDER BY value. */
function checkFrame({ orderBy, frame }: ResolvedWindow): void {
  if (!frame || frame.unit === "rows") return;
  const hasDistance = "by" in frame.start || "by" in frame.end;
  const [order, ...more] = orderBy;
  if (hasDistance && (!order || more.length > 0 || !isNumeric(order.expression.type))) {
    throw invalidQuery("RANGE with a distance needs one number in ORDER BY", frame.span);
  }
}
