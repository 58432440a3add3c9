import { arithmeticSql, divideSql, moduloSql } from "../postgres/arithmetic.ts";
import { arrayElementSql, arraySql } from "../postgres/arrays.ts";
import { comparisonSql } from "../postgres/comparisons.ts";
import { likeSql } from "../postgres/like.ts";
import type { ResolvedExpression } from "../resolve/resolved.ts";
import { ANY, type PostgresSql, type ScalarFunction } from "./entry.ts";

const condition = (postgres: PostgresSql): ScalarFunction => ({ isCondition: true, postgres });

const joined = (operator: "and" | "or"): ScalarFunction =>
  condition(({ arguments: args }, writer) => `(${args.map((one) => writer.truth(one)).join(` ${operator} `)})`);

/** Operators, keyed by the name of the ClickHouse function that each calls. The parser and the resolver produce these calls. */
export const OPERATORS: Readonly<Record<string, ScalarFunction>> = {
  plus: { postgres: arithmeticSql("plus") },
  minus: { postgres: arithmeticSql("minus") },
  multiply: { postgres: arithmeticSql("multiply") },
  divide: { postgres: divideSql },
  modulo: { postgres: moduloSql },
  negate: {
    postgres: ({ arguments: [operand], type }, writer) => `(-${writer.as(operand as ResolvedExpression, type)})`,
  },
  equals: condition(comparisonSql("equals")),
  notEquals: condition(comparisonSql("notEquals")),
  less: condition(comparisonSql("less")),
  lessOrEquals: condition(comparisonSql("lessOrEquals")),
  greater: condition(comparisonSql("greater")),
  greaterOrEquals: condition(comparisonSql("greaterOrEquals")),
  and: joined("and"),
  or: joined("or"),
  not: condition(({ arguments: [operand] }, writer) => `(not ${writer.truth(operand as ResolvedExpression)})`),
  isNull: { takes: [ANY], isCondition: true, sql: (value) => `(${value} is null)` },
  isNotNull: { takes: [ANY], isCondition: true, sql: (value) => `(${value} is not null)` },
  like: condition(likeSql("like")),
  notLike: condition(likeSql("not like")),
  ilike: condition(likeSql("ilike")),
  notILike: condition(likeSql("not ilike")),
  array: { postgres: arraySql },
  arrayElement: { postgres: arrayElementSql },
};
