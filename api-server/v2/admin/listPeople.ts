import * as z from "zod";
import { type PersonPosition, pagePeople } from "../../db/people.ts";
import { peopleScopeOf } from "../../domain/administration/people.ts";
import { readBriefly } from "../../domain/lists/pages.ts";
import { onWorkspace } from "../../domain/permissions/required-permissions.ts";
import { type Call, defineListProcedure, type Page } from "../../procedure.ts";
import { Cursor, PageLimit, Search } from "../schemas.ts";
import { PersonOut, toPersonOut } from "./people-schemas.ts";

/** Maximum length of a cursor: a sort name, an issuer and a subject of 255 characters each, encoded in base64url. */
const CURSOR_LENGTH_MAX = 8192;

const Body = z.strictObject({
  limit: PageLimit,
  cursor: Cursor.max(CURSOR_LENGTH_MAX).optional(),
  search: Search.describe("Search text: matches if the name, e-mail address or subject contains it, ignoring case.")
    .meta({ examples: ["ada"] })
    .optional(),
});
type Body = z.output<typeof Body>;

const required = { readPerson: onWorkspace("read_person") };

export const listPeople = defineListProcedure({
  path: "admin.listPeople",
  effect: "read",
  summary: "List the people who are signed in",
  description:
    "Lists people with an open dashboard session that gives a role in the workspace, sorted by name. Roles are according to the current roles file.",
  permissions: required,
  errors: ["request_timeout"],
  addition: true,
  body: Body,
  item: PersonOut,
  paginated: true,
  handle,
});

async function handle(call: Call<Body, typeof required>): Promise<Page<PersonOut>> {
  const { body, deps } = call;
  const { limit, cursor, search = "" } = body;
  call.require(required.readPerson);
  const scope = await peopleScopeOf(call);
  // Reads one extra row. If it exists, there is a next page, which starts with this row.
  const page = { ...scope.open, search: search.trim(), from: readCursor(cursor), rowsMax: limit + 1 };
  const rows = await readBriefly(deps, "Searching for a longer text is often faster.", (db) => pagePeople(db, page));
  const next = rows[limit];
  return {
    items: rows.slice(0, limit).map((row) => toPersonOut(row, scope, deps)),
    cursor: next && cursorOf([next.sort_name, next.issuer, next.subject]),
  };
}

const cursorOf = (position: PersonPosition): string => Buffer.from(JSON.stringify(position)).toString("base64url");

/** Parses a cursor. Any string is accepted; a malformed one starts at the first person. */
function readCursor(cursor = ""): PersonPosition {
  const start = ["", "", ""] as const;
  try {
    const parsed = Position.safeParse(JSON.parse(Buffer.from(cursor, "base64url").toString()));
    return parsed.success ? parsed.data : start;
  } catch {
    return start;
  }
}

/** Postgres can store neither U+0000 nor lone surrogates. */
const Text = z.string().refine((text) => text.isWellFormed() && !text.includes("\0"));
const Position = z.tuple([Text, Text, Text]);
