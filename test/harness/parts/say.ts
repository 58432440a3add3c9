import { type FirstWork, withNotice } from "../../../cli/progress.ts";

/* Prints progress of slow first-time work of the harness. */

export function say(line: string): void {
  process.stderr.write(`harness: ${line}\n`);
}

/** Prints the start with the expected duration and the end of first-time work. */
export const telling = <T>({ doing, takes }: FirstWork, run: () => Promise<T>): Promise<T> =>
  withNotice({ note: say }, {}, { doing, takes: `${takes}, once` }, run);
