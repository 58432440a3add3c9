import * as z from "zod";
import { pageRootKeys } from "../../db/root-keys.ts";
import { PAGE_BYTES_MAX, readPage } from "../../domain/lists/pages.ts";
import { onWorkspace } from "../../domain/permissions/required-permissions.ts";
import { type Call, defineListProcedure, type Page } from "../../procedure.ts";
import { Cursor, PageLimit, Search } from "../schemas.ts";
import { describeRootKeys } from "./describe-root-keys.ts";
import { Environment, RootKeyOut, RootKeyStateField } from "./root-key-schemas.ts";

const Body = z.strictObject({
  limit: PageLimit,
  cursor: Cursor.max(1024).optional(),
  search: Search.describe("Search text: matches if the id, name or start contains it, ignoring case.")
    .meta({ examples: ["billing"] })
    .optional(),
  environment: Environment.describe("Returns only root keys with this environment label.").optional(),
  state: RootKeyStateField.describe("Returns only root keys in this state.").optional(),
  v1UsedSince: z.iso
    .date()
    .describe("Returns only root keys that called the v1 API on this UTC date or later.")
    .meta({ examples: ["2026-01-31"] })
    .optional(),
});
type Body = z.output<typeof Body>;

/**
 * Maximum total size of the permissions in a page. It is only a quarter of the maximum page size, because findings and usage repeat
 * permissions.
 */
const PERMISSIONS_BYTES_MAX = PAGE_BYTES_MAX / 4;

const required = { readRootKey: onWorkspace("read_root_key") };

export const listRootKeys = defineListProcedure({
  path: "admin.listRootKeys",
  effect: "read",
  summary: "List the root keys",
  description:
    "Lists root keys in the order of their ids, except revoked ones. Secrets are not stored, so none is returned.",
  permissions: required,
  errors: [],
  addition: true,
  body: Body,
  item: RootKeyOut,
  paginated: true,
  handle,
});

async function handle(call: Call<Body, typeof required>): Promise<Page<RootKeyOut>> {
  const { limit, cursor = "", search, environment = null, state = null, v1UsedSince = null } = call.body;
  call.require(required.readRootKey);
  const nowMs = call.deps.nowMs();
  const { workspaceId } = call.caller;
  // Reads one extra row. If it exists, there is a next page, which starts with this row.
  const filters = { environment, state, v1UsedSince, nowMs };
  const page = { workspaceId, cursor, ...filters, rowsMax: limit + 1, bytesMax: PERMISSIONS_BYTES_MAX };
  const rows = await readPage(call, search, {
    all: (db) => pageRootKeys(db, { ...page, search: "" }),
    fitting: (db, part) => pageRootKeys(db, { ...page, search: part }),
  });
  const shown = rows.slice(0, limit);
  const items = await describeRootKeys(call.deps.db, { workspaceId, rows: shown, nowMs });
  return { items, cursor: shown.at(-1)?.next_id ?? undefined };
}
