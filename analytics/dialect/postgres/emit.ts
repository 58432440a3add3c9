import type { StoreQuery } from "../../contract.ts";
import type { ResolvedBody, ResolvedQuery } from "../resolve/resolved.ts";
import { resultType } from "../resolve/result-type.ts";
import { commonName } from "./from.ts";
import { Parameters } from "./parameters.ts";
import { bodySql, type Statement } from "./select.ts";

export interface EmitOptions {
  /** Value of `now()`, in Unix ms. */
  readonly nowMs: number;
  /** Maximum number of result rows. */
  readonly rowsMax: number;
  /** Workspace for which the query will run. It helps the planner and does not affect the result. */
  readonly workspaceId?: string;
}

/**
 * Emits a query as a Postgres SELECT over the views of schema `analytics`. Its columns are c1, c2, …
 * @throws QueryProblem if Postgres cannot return the same result as ClickHouse.
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

/** Applies the row limit only to the outermost SELECT. A truncated subquery would make results wrong. */
function atMost(body: ResolvedBody, rowsMax: bigint): ResolvedBody {
  if (body.kind === "set") return body;
  return { ...body, limit: body.limit === undefined || body.limit > rowsMax ? rowsMax : body.limit };
}
