import { aggregateFunction, windowFunction } from "../functions/registry.ts";
import type { ResolvedBound, ResolvedFrame, WindowCall } from "../resolve/resolved.ts";
import { orderSql } from "./order.ts";
import type { Writer } from "./writer.ts";

export function windowSql(call: WindowCall, writer: Writer): string {
  const over = ` over (${overSql(call, writer)})`;
  const aggregate = aggregateFunction(call.name);
  if (aggregate) return aggregate.postgres({ ...call, distinct: false, over }, writer);
  const entry = windowFunction(call.name);
  if (!entry) throw new TypeError(`there is no window function ${call.name}`);
  return entry.postgres(call, over, writer);
}

function overSql({ partitionBy, orderBy, frame }: WindowCall, writer: Writer): string {
  const partition = partitionBy.map((one) => writer.value(one)).join(", ");
  return [
    ...(partition ? [`partition by ${partition}`] : []),
    ...(orderBy.length > 0 ? [`order by ${orderBy.map((one) => orderSql(one, writer)).join(", ")}`] : []),
    ...(frame ? [frameSql(frame, writer)] : []),
  ].join(" ");
}

const frameSql = ({ unit, start, end }: ResolvedFrame, writer: Writer): string =>
  `${unit} between ${boundSql(start, writer)} and ${boundSql(end, writer)}`;

const boundSql = (bound: ResolvedBound, { parameters }: Writer): string =>
  "by" in bound ? `${parameters.bigint(bound.by)} ${bound.kind}` : bound.kind;
