import type { StoreQuery } from "../../contract.ts";
import type { ResolvedBody, ResolvedQuery } from "../../dialect/resolve/resolved.ts";
import { resultType } from "../../dialect/resolve/result-type.ts";
import { commonName } from "./from.ts";
import { Parameters } from "./parameters.ts";
import { bodySql, type Statement } from "./select.ts";

export interface EmitOptions {
  /** Unix ms: what `now()` is. */
  readonly nowMs: number;
  /** The most rows of the answer. */
  readonly rowsMax: number;
  /** That of the scope in which the query will run. Left out, the answer is the same, but Postgres does not know for whom it plans. */
  readonly workspaceId?: string;
}

/**
 * Writes a query as a SELECT of Postgres over the views of schema `analytics`. Its columns are c1, c2, …
 * @throws QueryProblem for what Postgres cannot answer with ClickHouse's numbers.
 */
export function emitForPostgres({ common, body, names }: ResolvedQuery, options: EmitOptions): StoreQuery {
  const { nowMs, rowsMax, workspaceId } = options;
  const parameters = new Parameters();
  const statement: Statement = { parameters, nowMs, workspaceId, commonTypes: (index) => common[index]?.types ?? [] };
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
