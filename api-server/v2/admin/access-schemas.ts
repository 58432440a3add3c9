import * as z from "zod";
import { Manager } from "../managed/managed-kinds.ts";
import { Cursor, Search, unixMs } from "../schemas.ts";

/* Shared fields of the procedures that list keys, roles, permissions, identities and rate-limit namespaces for the dashboard. */

export const ManagerOut = Manager.optional().describe(
  "`<cluster>/<kind>/<namespace>/<name>` of the manifest that manages the object. Change the object there.",
);

/** Cursor of a list that is sorted by name. The cursor is a name, so its maximum length is that of names. */
export const NameCursor = Cursor.max(1024);

export const ListSearch = Search.optional();

export const CountOut = z.strictObject({
  used: z
    .int()
    .describe("Units used in the sliding window, at most `limit`.")
    .meta({ examples: [58] }),
  remaining: z
    .int()
    .describe("Units left.")
    .meta({ examples: [42] }),
  reset: unixMs("When the window ends, Unix milliseconds."),
});

export const usesOut = (what: string) =>
  z
    .int()
    .describe(`${what}; 1,001 stands for more than 1,000.`)
    .meta({ examples: [12] });
