import { QueryProblem } from "../../../analytics/dialect/problem.ts";
import type { Call, Query, StringLiteral } from "../../../analytics/dialect/tree.ts";
import { walk } from "../../../analytics/dialect/walk.ts";
import type { Queryable } from "../../../postgres/queryable.ts";
import { listKeySpaces } from "../../db/apis.ts";

interface Readable {
  readonly workspaceId: string;
  /** Key spaces that the caller is allowed to read; `undefined` for all of the workspace. */
  readonly within: readonly string[] | undefined;
}

const NAME = "keyspaceof";

/**
 * Replaces each `keySpaceOf('api_…')` in a query, in place, with the id of the API's key space: the analytics store counts usage by key
 * space and has no data about APIs. If the API does not exist or the caller is not allowed to read it, the replacement is the empty string,
 * which matches no row.
 * @throws QueryProblem
 */
export async function joinKeySpaces(query: Query, db: Queryable, { workspaceId, within }: Readable): Promise<void> {
  const found = callsIn(query);
  if (found.length === 0) return;
  // Omits invalid ids, because Postgres rejects the character NUL, which they may contain.
  const apiIds = [...new Set(found.map(({ apiId }) => apiId))].filter((id) => /^\w{1,255}$/.test(id));
  const rows = await listKeySpaces(db, { workspaceId, apiIds });
  const readable = new Map(rows.filter((row) => within?.includes(row.keySpaceId) ?? true).map((row) => [row.id, row]));
  for (const { call, apiId } of found) {
    const literal: StringLiteral = { kind: "string", value: readable.get(apiId)?.keySpaceId ?? "", span: call.span };
    for (const name of Object.keys(call)) delete (call as unknown as Record<string, unknown>)[name];
    Object.assign(call, literal);
  }
}

function callsIn(query: Query): { readonly call: Call; readonly apiId: string }[] {
  const found: { call: Call; apiId: string }[] = [];
  walk(query, (part) => {
    if (part.kind !== "call" || part.name.text.toLowerCase() !== NAME) return true;
    const [argument, ...more] = part.arguments;
    const isPlain = !part.distinct && (part.parameters ?? part.filter ?? part.over) === undefined;
    if (!isPlain || argument?.kind !== "string" || more.length > 0) {
      const detail =
        "keySpaceOf takes the id of an API as a string literal, such as keySpaceOf('api_9xKp3Rt6VwY1zAbC')";
      throw new QueryProblem("invalid_analytics_query", detail, part.span);
    }
    found.push({ call: part, apiId: argument.value });
    return false;
  });
  return found;
}
