import { formatDuration } from "../core/manifests/from-store/format-duration.ts";
import { type Accepts, UsageError } from "./command.ts";
import { parseChoice, parseDurationOption, parseInteger, parseListen, parsePort } from "./values.ts";

/*
 * What the values of options may be. Each is checked before a command runs, and stands in docs/operations/configuration.md, so that
 * bounds are said once: what reads the value takes `min` and `max` from here.
 */

/** A whole decimal number. */
export const whole = ({ min, max, unit }: { min: number; max: number; unit: string }) => ({
  ...{ min, max, unit },
  says: `${min} to ${max}`,
  check: (option: string, text: string) => void parseInteger(option, text, { min, max }),
});

export const PORT: Accepts = {
  says: "0 to 65535",
  unit: "port",
  check: (option, text) => void parsePort(option, text),
};

/** A port, or a host and a port. */
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

/** An address that begins with one of these schemes. It may hold a password, so no message shows it. */
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

/** What is checked, if at all, by what reads it: `says` tells what it is. */
export const text = (unit: string, says = ""): Accepts => ({ says, unit, check: () => {} });

export const FILE = text("file path");
/** It is read again when it changes. */
export const FOLLOWED_FILE: Accepts = {
  ...text("file path"),
  followed: true,
};
export const FOLDER = text("directory path");
export const FOLLOWED_FOLDER: Accepts = { ...FOLDER, followed: true };
