import { createContext, useContext } from "react";
import { ApiError } from "../api/api-error.ts";

/* Problems that the server found in a request, by form field. */

export type FieldFaults = ReadonlyMap<string, string>;

interface FormState {
  readonly faults: FieldFaults;
  /** Called when the user changes the field with this name. Hides the server's error for that field. */
  readonly onChanged: (name: string | undefined) => void;
}

export const FormContext = createContext<FormState>({ faults: new Map(), onChanged: () => undefined });

/**
 * Returns the problem that the server found with the field of this name or, for a list, with one of its items; `undefined` if it found
 * none, or if the field has changed since.
 */
export function useFieldFault(name: string | undefined): string | undefined {
  const { faults } = useContext(FormContext);
  if (name === undefined) return undefined;
  return faults.get(name) ?? [...faults].find(([member]) => listOf(member) === name)?.[1];
}

/**
 * Returns a function that reports a change without an `input` event, such as a click on an option. The form then asks before it discards
 * the change.
 */
export const useFormChanged = (): FormState["onChanged"] => useContext(FormContext).onChanged;

/** Returns the name of the list that contains the member: `roles` for `roles[2]`. */
export const listOf = (member: string): string => member.replace(/\[\d+\]$/, "");

/** Returns the problems in an error by member of the request body, such as `credits.remaining`. */
export const fieldFaultsOf = (error: unknown): FieldFaults =>
  new Map(
    error instanceof ApiError
      ? error.faults.map(({ location, message }) => [memberOf(location), faultText(message)])
      : [],
  );

/** Returns the member of the request body at a location: `credits.remaining` for `body.credits.remaining`. */
export const memberOf = (location: string): string => location.replace(/^body\./, "");

const CHARACTERS = /^expected text that matches \^\[([^\]]+)\]\S*\$$/;
const RANGES: Readonly<Record<string, string>> = { "a-z": "lowercase letters", "A-Z": "capitals", "0-9": "digits" };

/** Returns the text of a problem in plain words. The server's text describes the allowed characters by a regular expression. */
export function faultText(message: string): string {
  const [, characters] = CHARACTERS.exec(message) ?? [];
  if (characters === undefined) return `${message.charAt(0).toUpperCase()}${message.slice(1)}.`;
  const ranges: readonly string[] = characters.match(/[a-zA-Z0-9]-[a-zA-Z0-9]/g) ?? [];
  const others = ranges.reduce((rest, range) => rest.replace(range, ""), characters).replaceAll("\\", "");
  const words =
    ranges.includes("a-z") && ranges.includes("A-Z")
      ? ["letters", ...ranges.filter((range) => !/[a-z]/i.test(range)).map((range) => RANGES[range] ?? range)]
      : ranges.map((range) => RANGES[range] ?? range);
  return `Use only ${[...words, ...others].join(", ")}.`;
}
