import { commonType } from "../resolve/common-type.ts";
import type { ResolvedBound, ResolvedFrame, WindowCall } from "../resolve/resolved.ts";
import { aggregateSql, isAggregateName, ofWindow } from "./aggregates.ts";
import { orderSql } from "./order.ts";
import { defaultOf, orDefault, typeName } from "./type-names.ts";
import { unsupported } from "./unsupported.ts";
import type { Writer } from "./writer.ts";

export function windowSql(call: WindowCall, writer: Writer): string {
  const over = ` over (${overSql(call, writer)})`;
  const { name } = call;
  if (isAggregateName(name)) return aggregateSql(ofWindow({ ...call, name }, over), writer);
  switch (name) {
    case "row_number":
    case "rank":
    case "dense_rank":
      return `${name}()${over}`;
    case "lag":
    case "lead":
      return neighbourSql(call, over, writer);
    case "first_value":
    case "last_value": {
      const [value] = call.arguments;
      if (!value || value.type.nullable) throw unsupported(`${name} of what may be null is not supported`, call.span);
      return orDefault(`${name}(${writer.value(value)})${over}`, call.type);
    }
  }
}

/** Outside the partition, the result is the default from the call or the default of the type. */
function neighbourSql(call: WindowCall, over: string, writer: Writer): string {
  const [value, offset, otherwise] = call.arguments;
  if (!value) throw new TypeError(`${call.name} has no value`);
  const type = otherwise ? (commonType([value.type, otherwise.type]) ?? call.type) : call.type;
  const rows = offset?.kind === "literal" ? `${offset.value}` : "1";
  const beyond = otherwise ? writer.as(otherwise, type) : type.nullable ? `null::${typeName(type)}` : defaultOf(type);
  return `${call.name}(${writer.as(value, type)}, ${rows}, ${beyond})${over}`;
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
