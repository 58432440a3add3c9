import type { StoreQuery } from "../../contract.ts";
import { scalarFunction } from "../functions/registry.ts";
import { invalidQuery } from "../problem.ts";
import type {
  Aggregate,
  FunctionCall,
  JoinSource,
  Literal,
  Membership,
  ResolvedArrayJoin,
  ResolvedBody,
  ResolvedBound,
  ResolvedExpression,
  ResolvedFill,
  ResolvedLimitBy,
  ResolvedOrder,
  ResolvedQuery,
  ResolvedSelect,
  Source,
  WindowCall,
} from "../resolve/resolved.ts";
import { resultType } from "../resolve/result-type.ts";
import { clickhouseCast, type Type, typeSql, withZone, zoneOf } from "../resolve/types.ts";
import { sourceSql } from "./sources.ts";

export interface EmitOptions {
  /** Value of `now()`, in Unix ms. */
  readonly nowMs: number;
  /** Maximum number of result rows. */
  readonly rowsMax: number;
}

/**
 * Emits a query as a ClickHouse SELECT. The SQL contains no text from the caller: columns are named c1, c2, …, strings and times are
 * parameters p0, p1, … in the order of `values`, and function names have ClickHouse's spelling.
 * @throws QueryProblem for a nested join, which ClickHouse cannot parse, and for column types that a response cannot contain.
 */
export function emitForClickhouse({ common, body, names }: ResolvedQuery, { nowMs, rowsMax }: EmitOptions): StoreQuery {
  const writer = new Writer(nowMs);
  const tables = common.map((table, index) => `${commonName(index)} as (${writer.body(table)})`);
  const rows = writer.body(atMost(body, BigInt(rowsMax)));
  const limited = body.kind === "set" ? `select ${numbered(body.types)} from (${rows}) limit ${rowsMax}` : rows;
  return {
    text: `${tables.length > 0 ? `with ${tables.join(", ")} ` : ""}${limited}`,
    values: writer.values,
    columns: body.types.map((type, index) => ({ name: names[index] ?? "", type: resultType(type, body) })),
  };
}

/** Applies the row limit only to the outermost SELECT. A truncated subquery would make results wrong. */
function atMost(body: ResolvedBody, rowsMax: bigint): ResolvedBody {
  if (body.kind === "set") return body;
  return { ...body, limit: body.limit === undefined || body.limit > rowsMax ? rowsMax : body.limit };
}

/** Name of a CTE. */
const commonName = (index: number): string => `w${index}`;

const numbered = (types: readonly Type[]): string => types.map((_, index) => `c${index + 1}`).join(", ");

const OPERATORS = {
  "union all": "union all",
  "union distinct": "union distinct",
  except: "except all",
  "except distinct": "except distinct",
} as const;

/** Column names of a FROM clause, by source. */
type Columns = ReadonlyMap<number, (index: number) => string>;

class Writer {
  readonly values: unknown[] = [];
  readonly nowMs: number;

  constructor(nowMs: number) {
    this.nowMs = nowMs;
  }

  body(body: ResolvedBody): string {
    if (body.kind === "select") return this.#select(body);
    return `(${this.body(body.left)}) ${OPERATORS[body.operator]} (${this.body(body.right)})`;
  }

  #select(select: ResolvedSelect): string {
    const columns = columnsOf(select.from);
    const scope = new Expressions(this, columns, select.arrayJoins);
    const list = (expressions: readonly ResolvedExpression[]) => expressions.map((one) => scope.write(one)).join(", ");
    const selected = select.columns.map((column, index) => `${scope.write(column)} as c${index + 1}`);
    return [
      `select ${select.distinct ? "distinct " : ""}${selected.join(", ")}`,
      `from ${this.#from(select.from, columns)}${scope.arrayJoinClause()}`,
      ...(select.where ? [`where ${scope.write(select.where)}`] : []),
      ...(select.groupBy.length > 0 ? [`group by ${list(select.groupBy)}`] : []),
      ...(select.having ? [`${select.aggregated ? "having" : "qualify"} ${scope.write(select.having)}`] : []),
      ...(select.orderBy.length > 0 ? [`order by ${select.orderBy.map((one) => scope.order(one)).join(", ")}`] : []),
      ...(select.limitBy ? [limitBySql(select.limitBy, list(select.limitBy.by))] : []),
      ...(select.limit === undefined ? [] : [`limit ${select.limit}`]),
      ...(select.offset === undefined ? [] : [`offset ${select.offset}`]),
    ].join(" ");
  }

  #from(source: Source, columns: Columns): string {
    switch (source.kind) {
      case "table":
        return `${sourceSql(source.table)} as t${source.id}`;
      case "common":
        return `${commonName(source.index)} as t${source.id}`;
      case "derived":
        return `(${this.body(source.body)}) as t${source.id}`;
      case "join":
        return this.#join(source, columns);
    }
  }

  #join({ type, left, right, on }: JoinSource, columns: Columns): string {
    // ClickHouse parses joins left to right, so the right side must be a single table.
    if (right.kind === "join") throw invalidQuery("a join in parentheses is not supported", NOWHERE);
    const condition = on === undefined ? "" : ` on ${new Expressions(this, columns, []).write(on)}`;
    return `${this.#from(left, columns)} ${type} join ${this.#from(right, columns)}${condition}`;
  }

  literal({ value, type }: Literal): string {
    if (value === null) return "null";
    switch (typeof value) {
      case "bigint":
        return value < 0n ? `(${value})` : String(value);
      case "boolean":
        // Emits a literal as a call, because GROUP BY and ORDER BY would read a bare literal as a column position.
        return `toBool(${Number(value)})`;
      case "number":
        return floatSql(value);
      case "string":
        return this.#text(value, type);
    }
  }

  #text(value: string, type: Type): string {
    if (type.name === "String") return this.#parameter(value, "String");
    const zone = zoneOf(type);
    const parameter = this.#parameter(value, typeSql(withZone({ ...type, nullable: false } as Type, undefined)));
    return zone === undefined ? parameter : `toTimeZone(${parameter}, ${this.#parameter(zone, "String")})`;
  }

  #parameter(value: string, type: string): string {
    this.values.push(value);
    return `{p${this.values.length - 1}:${type}}`;
  }
}

/** Emits LIMIT BY. ClickHouse would read a bare constant as a column position. */
const limitBySql = ({ limit, offset }: ResolvedLimitBy, keys: string): string =>
  `limit ${limit} offset ${offset} by ${keys || "toString('')"}`;

const NOWHERE = { start: 0, end: 0 };

function floatSql(value: number): string {
  if (Number.isNaN(value)) return "nan";
  if (!Number.isFinite(value)) return value > 0 ? "inf" : "(-inf)";
  const text = String(Math.abs(value));
  const float = /[.e]/.test(text) ? text : `${text}.`;
  return value < 0 || Object.is(value, -0) ? `(-${float})` : float;
}

function columnsOf(source: Source): Columns {
  switch (source.kind) {
    case "join":
      return new Map([...columnsOf(source.left), ...columnsOf(source.right)]);
    case "table": {
      const names = Object.keys(source.table.columns);
      return new Map([[source.id, (index) => `t${source.id}.\`${names[index]}\``]]);
    }
    case "common":
    case "derived":
      return new Map([[source.id, (index) => `t${source.id}.c${index + 1}`]]);
  }
}

/** Emits the expressions of one SELECT for ClickHouse. */
class Expressions {
  readonly #writer: Writer;
  readonly #columns: Columns;
  readonly #arrayJoins: readonly ResolvedArrayJoin[];

  constructor(writer: Writer, columns: Columns, arrayJoins: readonly ResolvedArrayJoin[]) {
    this.#writer = writer;
    this.#columns = columns;
    this.#arrayJoins = arrayJoins;
  }

  write(expression: ResolvedExpression): string {
    switch (expression.kind) {
      case "literal":
        return this.#writer.literal(expression);
      case "column":
        return this.#column(expression.source, expression.index);
      case "call":
        return this.#call(expression);
      case "aggregate":
        return this.#aggregate(expression);
      case "window":
        return this.#window(expression);
      case "cast":
        return clickhouseCast(this.write(expression.operand), expression.type);
      case "in":
        return this.#membership(expression);
      case "subquery":
        return `${expression.exists ? "exists" : ""}(${this.#writer.body(expression.body)})`;
      case "arrayJoin": {
        const joined = this.#arrayJoins[expression.index];
        if (joined === undefined) throw new RangeError("no such array");
        return joined.by === "function" ? `arrayJoin(${this.write(joined.operand)})` : elementName(expression.index);
      }
      case "arrayFilter":
        return `arrayFilter(${variable(expression.variable)} -> ${this.write(expression.condition)}, ${this.write(expression.array)})`;
      case "variable":
        return variable(expression.number);
    }
  }

  arrayJoinClause(): string {
    const clauses = this.#arrayJoins.map(({ operand, by }, index) =>
      by === "function" ? "" : ` ${by} array join ${this.write(operand)} as ${elementName(index)}`,
    );
    return clauses.join("");
  }

  order({ expression, descending, nullsFirst, fill }: ResolvedOrder): string {
    const direction = `${descending ? " desc" : " asc"} nulls ${nullsFirst ? "first" : "last"}`;
    return `${this.write(expression)}${direction}${fill === undefined ? "" : this.#fill(fill)}`;
  }

  #fill({ from, to, step }: ResolvedFill): string {
    const part = (name: string, value: ResolvedExpression | undefined) =>
      value === undefined ? "" : ` ${name} ${this.write(value)}`;
    return ` with fill${part("from", from)}${part("to", to)}${part("step", step)}`;
  }

  #column(source: number, index: number): string {
    const nameOf = this.#columns.get(source);
    if (nameOf === undefined) throw new RangeError(`no source ${source}`);
    return nameOf(index);
  }

  #list(expressions: readonly ResolvedExpression[]): string {
    return expressions.map((one) => this.write(one)).join(", ");
  }

  #call(call: FunctionCall): string {
    const args = call.arguments.map((one) => this.write(one));
    return scalarFunction(call.name).clickhouse?.(call, args, this.#writer.nowMs) ?? `${call.name}(${args.join(", ")})`;
  }

  #aggregate({ name, parameters, arguments: args, distinct, filter }: Aggregate): string {
    const levels = parameters.length === 0 ? "" : `(${parameters.map(floatSql).join(", ")})`;
    const all = [...args.map((one) => this.write(one)), ...(filter === undefined ? [] : [this.write(filter)])];
    return `${name}${filter === undefined ? "" : "If"}${levels}(${distinct ? "distinct " : ""}${all.join(", ")})`;
  }

  #window({ name, parameters, arguments: args, filter, partitionBy, orderBy, frame }: WindowCall): string {
    const levels = parameters.length === 0 ? "" : `(${parameters.map(floatSql).join(", ")})`;
    const all = [...args.map((one) => this.write(one)), ...(filter === undefined ? [] : [this.write(filter)])];
    const parts = [
      ...(partitionBy.length > 0 ? [`partition by ${this.#list(partitionBy)}`] : []),
      ...(orderBy.length > 0 ? [`order by ${orderBy.map((one) => this.order(one)).join(", ")}`] : []),
      ...(frame === undefined ? [] : [`${frame.unit} between ${boundSql(frame.start)} and ${boundSql(frame.end)}`]),
    ];
    return `${name}${filter === undefined ? "" : "If"}${levels}(${all.join(", ")}) over (${parts.join(" ")})`;
  }

  #membership({ negated, operand, of }: Membership): string {
    const right = "kind" in of ? this.#writer.body(of) : this.#list(of);
    return `(${this.write(operand)} ${negated ? "not in" : "in"} (${right}))`;
  }
}

const elementName = (index: number): string => `a${index}`;

const variable = (number: number): string => `v${number}`;

const boundSql = (bound: ResolvedBound): string => ("by" in bound ? `${bound.by} ${bound.kind}` : bound.kind);
