import { type FirstWork, withNotice } from "../../../cli/progress.ts";

/* What the harness tells of the parts that it makes: they take so long at a first run that one wonders whether it hangs. */

export function say(line: string): void {
  process.stderr.write(`harness: ${line}\n`);
}

/** Says what is made, once for each machine, and how long that takes, and when it is done. */
export const telling = <T>({ doing, takes }: FirstWork, run: () => Promise<T>): Promise<T> =>
  withNotice({ note: say }, {}, { doing, takes: `${takes}, once` }, run);
