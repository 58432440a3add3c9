import { formatDuration } from "../core/manifests/from-store/format-duration.ts";
import { type Accepts, UsageError } from "./command.ts";
import { parseChoice, parseDurationOption, parseInteger, parseListen, parsePort } from "./values.ts";

/*
 * Validators that check option values before the command runs. docs/operations/configuration.md lists their bounds, and the value parsers
 * use the same `min` and `max`.
 */

/** Accepts a decimal integer. */
export const integer = ({ min, max, unit }: { min: number; max: number; unit: string }) => ({
  ...{ min, max, unit },
  says: `${min} to ${max}`,
  check: (option: string, text: string) => void parseInteger(option, text, { min, max }),
});

export const PORT: Accepts = {
  says: "0 to 65535",
  unit: "port",
  check: (option, text) => void parsePort(option, text),
};

/** Accepts a port, or a host and a port. */
export const LISTEN: Accepts = {
  says: "PORT or HOST:PORT",
  unit: "address",
  check: (option, text) => void parseListen(option, text, ""),
};

export const duration = (range: { minMs: number; maxMs: number }) => ({
  ...range,
  says: `${formatDuration(range.minMs)} to ${formatDuration(range.maxMs)}`,
  unit: "duration",
  check: (option: string, text: string) => void parseDurationOption(option, text, range),
});

export const oneOf = <const Word extends string>(...words: readonly [Word, ...Word[]]) => ({
  words,
  says: words.map((word) => `\`${word}\``).join(" or "),
  unit: "word",
  check: (option: string, text: string) => void parseChoice(option, text, words),
});

export const SWITCH = oneOf("on", "off");

/** Accepts a URL with one of these schemes. Errors do not repeat the URL, which may contain a password. */
export const url = (...schemes: readonly string[]): Accepts => {
  const begins = schemes.map((scheme) => `${scheme}://`).join(" or ");
  return {
    says: `${begins}`,
    unit: "URL",
    check: (option, text) => {
      const protocol = URL.parse(text)?.protocol;
      if (schemes.some((scheme) => protocol === `${scheme}:` && text.startsWith(`${scheme}://`))) return;
      throw new UsageError(`invalid value for --${option}: must be a URL that begins with ${begins}`);
    },
  };
};

export const HTTP_URL = url("http", "https");

/** Accepts any text; the command validates it if necessary. `says` describes the value in the documentation. */
export const text = (unit: string, says = ""): Accepts => ({ says, unit, check: () => {} });

export const FILE = text("file path");
/** Accepts a file that is reloaded on change. */
export const FOLLOWED_FILE: Accepts = {
  ...text("file path"),
  followed: true,
};
export const FOLDER = text("directory path");
export const FOLLOWED_FOLDER: Accepts = { ...FOLDER, followed: true };
