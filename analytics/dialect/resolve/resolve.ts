import { invalidQuery } from "../problem.ts";
import type { CommonTable, Expression, Query, Select } from "../tree.ts";
import { aliasesOf } from "./aliases.ts";
import { commonType } from "./common-type.ts";
import { type ExpressionContext, resolveExpression } from "./expressions.ts";
import { RawTimes } from "./raw-times.ts";
import type { ResolvedBody, ResolvedExpression, ResolvedQuery } from "./resolved.ts";
import { Scope } from "./scope.ts";
import { resolveSelect } from "./select.ts";
import { type NamedBody, resolveFrom, type Visible } from "./sources.ts";
import { checkSize } from "./subexpressions.ts";

/**
 * Resolves names, aliases, positions and types. `text` is the source text of the tree; result columns without an alias are named after it.
 * @throws QueryProblem of kind `invalid_analytics_query`.
 */
export function resolveQuery({ query, text }: { readonly query: Query; readonly text: string }): ResolvedQuery {
  const resolver = new Resolver(text);
  const { body, names } = resolver.query(query, { common: new Map(), constants: new Map() });
  return { common: resolver.common, body, names };
}

/** Definitions in the WITH of enclosing queries, which are visible here. */
interface QueryScope {
  readonly common: ReadonlyMap<string, Definition>;
  /** Named expressions from enclosing queries. Within a subquery they must be constant. */
  readonly constants: ReadonlyMap<string, () => ResolvedExpression>;
}

/** CTE, resolved on first use. */
type Definition = () => NamedBody & { readonly index: number };

class Resolver {
  readonly common: ResolvedBody[] = [];
  readonly #text: string;
  readonly #rawTimes = new RawTimes();

  constructor(text: string) {
    this.#text = text;
  }

  query(query: Query, around: QueryScope): NamedBody {
    const named = query.kind === "select" ? this.#select(query, around) : this.#set(query, around);
    checkSize(named.body);
    return named;
  }

  #set(query: Extract<Query, { kind: "set" }>, around: QueryScope): NamedBody {
    // In a set operation such as UNION, the CTEs of the first branch are visible in all branches.
    const inside = this.#withDefinitions(firstSelect(query).with, around);
    const left = this.query(query.left, inside);
    const right = this.query(query.right, inside);
    if (left.body.types.length !== right.body.types.length) {
      throw invalidQuery("both sides of a UNION or EXCEPT have the same number of columns", query.span);
    }
    const types = left.body.types.map((type, index) => {
      const common = commonType([type, right.body.types[index] ?? type]);
      if (!common) throw invalidQuery(`no type holds column ${index + 1} of both sides`, query.span);
      return common;
    });
    const { operator, span } = query;
    return { body: { kind: "set", span, operator, left: left.body, right: right.body, types }, names: left.names };
  }

  #select(select: Select, outer: QueryScope): NamedBody {
    const inside = this.#withDefinitions(select.with, outer);
    const from = resolveFrom(select.from, {
      add: (source, body) => this.#rawTimes.add(source, body),
      derived: (query) => this.query(query, inside),
      common: ({ text }) => inside.common.get(text)?.(),
      isRawTime: this.#rawTimes.has,
      condition: (on, visible) => this.#condition(on, visible, inside),
    });
    const scope = new Scope({
      ...from,
      aliases: aliasesOf(select),
      constants: outer.constants,
      windows: new Map(select.windows.map(({ name, window }) => [name.text, window])),
    });
    const place = this.#place(scope, inside);
    if (select.arrayJoin) scope.joinArray(select.arrayJoin, this.#array(select.arrayJoin.array, place));
    return resolveSelect(select, { from: from.source, place, text: this.#text });
  }

  /** Resolves a join condition. It may use the columns of the sources joined so far, but no aliases. */
  #condition(on: Expression, visible: Visible, around: QueryScope): ResolvedExpression {
    const { constants } = around;
    const scope = new Scope({ ...visible, aliases: new Map(), constants, windows: new Map() });
    const condition = resolveExpression(on, this.#place(scope, around));
    if (scope.arrayJoins.length > 0) throw invalidQuery("arrayJoin cannot be used in the condition of a join", on.span);
    return condition;
  }

  #array(array: Expression, place: ExpressionContext): ResolvedExpression {
    const operand = resolveExpression(array, place);
    if (place.scope.arrayJoins.length > 0) throw invalidQuery("arrayJoin cannot be used in ARRAY JOIN", array.span);
    return operand;
  }

  #place(scope: Scope, around: QueryScope): ExpressionContext {
    const subquery = (query: Query) => this.query(query, around).body;
    return { scope, isRawTime: this.#rawTimes.has, subquery, lambdas: [] };
  }

  /** Returns the outer scope extended by the items of WITH. In each definition, the previous ones are visible. */
  #withDefinitions(tables: readonly CommonTable[], outer: QueryScope): QueryScope {
    let { common, constants } = outer;
    for (const { name, is } of tables) {
      const around = { common, constants };
      if (is.kind === "expression") {
        constants = new Map(constants).set(name.text, () => this.#constant(is.expression, around));
      } else {
        common = new Map(common).set(name.text, this.#definition(is, around));
      }
    }
    return { common, constants };
  }

  #definition(query: Query, around: QueryScope): Definition {
    let read: (NamedBody & { readonly index: number }) | undefined;
    return () => {
      if (read) return read;
      const named = this.query(query, around);
      read = { ...named, index: this.common.push(named.body) - 1 };
      return read;
    };
  }

  #constant(expression: Expression, around: QueryScope): ResolvedExpression {
    const { constants } = around;
    const scope = new Scope({ sources: [], merged: [], aliases: new Map(), constants, windows: new Map() });
    return resolveExpression(expression, this.#place(scope, around));
  }
}

const firstSelect = (query: Query): Select => (query.kind === "select" ? query : firstSelect(query.left));
