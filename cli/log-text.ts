import { printableJson } from "./fields.ts";

/*
 * Converts pino's JSON lines to text lines for people, `TIME LEVEL message name=value …`, so that both formats have the same content.
 */

const LEVELS: Readonly<Record<number, string>> = {
  10: "TRACE",
  20: "DEBUG",
  30: "INFO",
  40: "WARN",
  50: "ERROR",
  60: "FATAL",
};

/** Returns a JSON line of pino as text; any other line is returned unchanged. */
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

/**
 * Returns the text as one line. A name or other text of an untrusted client must neither start a new line nor send escape codes to the
 * terminal.
 */
const oneLine = (text: string): string => printableJson(text).slice(1, -1).replaceAll('\\"', '"');

function valueText(value: unknown): string {
  if (typeof value === "string" && /^[\w./:@+-]+$/.test(value)) return value;
  return printableJson(value);
}

/** Returns the indented messages and stack traces of an error and its causes. */
function errorText(error: unknown): string {
  if (typeof error !== "object" || error === null) return `    ${oneLine(String(error))}`;
  const { stack, message, cause } = error as { stack?: unknown; message?: unknown; cause?: unknown };
  const own = String(stack ?? message ?? "")
    .split("\n")
    .map((line) => `    ${oneLine(line.trim())}`)
    .join("\n");
  return cause === undefined ? own : `${own}\n    caused by\n${errorText(cause)}`;
}
