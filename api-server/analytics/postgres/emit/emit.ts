import type { ResultType, StoreQuery } from "../../contract.ts";
import type { ResolvedBody, ResolvedQuery } from "../../dialect/resolve/resolved.ts";
import { isInteger, type Type, typeText } from "../../dialect/resolve/types.ts";
import { commonName } from "./from.ts";
import { Parameters } from "./parameters.ts";
import { bodySql, type Statement } from "./select.ts";
import { unsupported } from "./unsupported.ts";

export interface EmitOptions {
  /** Unix ms: what `now()` is. */
  readonly nowMs: number;
  /** The most rows of the answer. */
  readonly rowsMax: number;
}

/**
 * Writes a query as a SELECT of Postgres over the views of schema `analytics`. Its columns are c1, c2, …
 * @throws QueryProblem for what Postgres cannot answer with ClickHouse's numbers.
 */
export function emitForPostgres({ common, body, names }: ResolvedQuery, { nowMs, rowsMax }: EmitOptions): StoreQuery {
  const parameters = new Parameters();
  const statement: Statement = { parameters, nowMs, commonTypes: (index) => common[index]?.types ?? [] };
  const tables = common.map((table, index) => `${commonName(index)} as (${bodySql(table, table.types, statement)})`);
  const rows = bodySql(atMost(body, BigInt(rowsMax)), body.types, statement);
  const limited = body.kind === "set" ? `${rows} limit ${parameters.bigint(BigInt(rowsMax))}` : rows;
  return {
    text: `${tables.length > 0 ? `with ${tables.join(", ")} ` : ""}${limited}`,
    values: parameters.values,
    columns: body.types.map((type, index) => ({ name: names[index] ?? "", type: resultType(type, body) })),
  };
}

/** The row maximum belongs to the outermost SELECT alone: a cut subquery would be a wrong number. */
function atMost(body: ResolvedBody, rowsMax: bigint): ResolvedBody {
  if (body.kind === "set") return body;
  return { ...body, limit: body.limit === undefined || body.limit > rowsMax ? rowsMax : body.limit };
}

function resultType(type: Type, { span }: ResolvedBody): ResultType {
  const name = isInteger(type) && type.name !== "UInt8" && type.name !== "Int32" ? "Int64" : type.name;
  switch (name) {
    case "Interval":
      throw unsupported("an interval cannot be a column", span);
    case "DateTime64":
      return momentType(type, span);
    case "Array":
      return arrayType(type, span);
    case "UInt16":
    case "UInt32":
    case "UInt64":
    case "Int8":
    case "Int16":
      return "Int64";
    default:
      return name;
  }
}

function momentType(type: Type, span: ResolvedBody["span"]): ResultType {
  if (type.name === "DateTime64" && type.scale === 3) return "DateTime64(3)";
  if (type.name === "DateTime64" && type.scale === 0) return "DateTime";
  throw unsupported(`a column of ${typeText(type)} is not supported: use toString`, span);
}

function arrayType(type: Type, span: ResolvedBody["span"]): ResultType {
  const element = type.name === "Array" ? type.of : type;
  if (isInteger(element)) return "Array(Int64)";
  switch (element.name) {
    case "String":
    case "Nothing":
      return "Array(String)";
    case "Float64":
    case "Bool":
    case "Date":
    case "DateTime":
      return `Array(${element.name})`;
    default:
      throw unsupported(`a column of ${typeText(type)} is not supported`, span);
  }
}
