import { printableJson } from "./fields.ts";

/*
 * Log lines for people: `TIME LEVEL message name=value …`, made from the lines of JSON that pino writes, so that what is logged is
 * the same in both formats.
 */

const LEVELS: Readonly<Record<number, string>> = {
  10: "TRACE",
  20: "DEBUG",
  30: "INFO",
  40: "WARN",
  50: "ERROR",
  60: "FATAL",
};

/** `line` is one JSON object with pino's members; anything else is returned as it is. */
export function toTextLine(line: string): string {
  let entry: unknown;
  try {
    entry = JSON.parse(line);
  } catch {
    return line;
  }
  if (typeof entry !== "object" || entry === null) return line;
  const { time, level, msg = "", name: _, err, ...rest } = entry as Record<string, unknown>;
  const when = typeof time === "number" ? new Date(time).toISOString() : "-";
  const fields = Object.entries(rest).map(([name, value]) => `${name}=${valueText(value)}`);
  const head = [when, (LEVELS[Number(level)] ?? "-").padEnd(5), oneLine(String(msg)), ...fields].join(" ");
  return err === undefined ? head : `${head}\n${errorText(err)}`;
}

/** What a stranger wrote, such as a name, must not be able to begin a line of its own, or to command the terminal that shows it. */
const oneLine = (text: string): string => printableJson(text).slice(1, -1).replaceAll('\\"', '"');

function valueText(value: unknown): string {
  if (typeof value === "string" && /^[\w./:@+-]+$/.test(value)) return value;
  return printableJson(value);
}

/** The message and the stack of an error and of its causes, indented. */
function errorText(error: unknown): string {
  if (typeof error !== "object" || error === null) return `    ${oneLine(String(error))}`;
  const { stack, message, cause } = error as { stack?: unknown; message?: unknown; cause?: unknown };
  const own = String(stack ?? message ?? "")
    .split("\n")
    .map((line) => `    ${oneLine(line.trim())}`)
    .join("\n");
  return cause === undefined ? own : `${own}\n    caused by\n${errorText(cause)}`;
}
