import { invalidQuery } from "../problem.ts";
import type { Span } from "../tree.ts";
import { offsetMs } from "./instants.ts";
import { stringLiteral } from "./literals.ts";
import { call, type ResolvedExpression } from "./resolved.ts";
import { DATE_TIME, isDate, withZone, zoneOf } from "./types.ts";

const UTC = /^(UTC|Etc\/UTC)$/;

/** Returns the time zone that a query names: `undefined` for UTC. ClickHouse compares names with regard to case. */
export function readZone(name: string, span: Span): string | undefined {
  if (UTC.test(name)) return undefined;
  if (isZone(name)) return name;
  throw invalidQuery(`'${name}' is not a time zone, such as 'Europe/Berlin'`, span);
}

function isZone(name: string): boolean {
  try {
    return /^[A-Z][\w+-]*(\/[A-Z][\w+-]*)+$/.test(name) && offsetMs(0, name) !== undefined;
  } catch {
    return false;
  }
}

/** Returns the same time in another zone, or the midnight of a Date in the zone. */
export function inZone(time: ResolvedExpression, zone: string | undefined): ResolvedExpression {
  if (!isDate(time.type) || zoneOf(time.type) === zone) return time;
  const name = stringLiteral(zone ?? "UTC", time.span);
  if (time.type.name === "Date") return call("toDateTime", [time, name], withZone(DATE_TIME, zone), time.span);
  return call("toTimeZone", [time, name], withZone(time.type, zone), time.span);
}
