import type { ResultType } from "../../contract.ts";
import { invalidQuery } from "../problem.ts";
import type { ResolvedBody } from "./resolved.ts";
import { isInteger, type Type, typeText } from "./types.ts";

/** Returns the type of a result column. @throws QueryProblem if a response cannot contain the type. */
export function resultType(type: Type, { span }: ResolvedBody): ResultType {
  const name = isInteger(type) && type.name !== "UInt8" && type.name !== "Int32" ? "Int64" : type.name;
  switch (name) {
    case "Interval":
      throw invalidQuery("an interval cannot be a column", span);
    case "DateTime64":
      return timestampType(type, span);
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

function timestampType(type: Type, span: ResolvedBody["span"]): ResultType {
  if (type.name === "DateTime64" && type.scale === 3) return "DateTime64(3)";
  if (type.name === "DateTime64" && type.scale === 0) return "DateTime";
  throw invalidQuery(`a column of ${typeText(type)} is not supported: use toString`, span);
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
      throw invalidQuery(`a column of ${typeText(type)} is not supported`, span);
  }
}
