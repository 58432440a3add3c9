import * as z from "zod";
import { listApisWithCounts } from "../../db/api-list.ts";
import { describeApi } from "../../domain/administration/apis.ts";
import { readPage } from "../../domain/lists/pages.ts";
import { onApi } from "../../domain/permissions/required-permissions.ts";
import { type Call, defineListProcedure, type Page } from "../../procedure.ts";
import { ApiIdOut, Cursor, PageLimit, Search, unixMs } from "../schemas.ts";

/** Number up to which the keys of an API are counted. If an API has more, the response says so. */
const COUNTED_KEYS_MAX = 10_000;

const Body = z.strictObject({
  limit: PageLimit,
  cursor: Cursor.optional(),
  search: Search.describe("Search text: matches if the name or id contains it, ignoring case.").optional(),
});
type Body = z.output<typeof Body>;

const ListedApi = z.strictObject({
  apiId: ApiIdOut,
  name: z
    .string()
    .describe("Display name of the API.")
    .meta({ examples: ["payments"] }),
  keys: z
    .strictObject({
      count: z
        .int()
        .describe("Number of live keys, up to 10,000.")
        .meta({ examples: [42] }),
      hasMore: z.boolean().describe("Whether the API has more than `count` keys."),
    })
    .describe("Number of keys of the API."),
  deleteProtection: z.boolean().describe("Whether the API is protected from deletion."),
  keyEncryption: z.boolean().describe("Whether recoverable keys can be created in the API."),
  defaultPrefix: z
    .string()
    .optional()
    .describe("Default prefix of new keys.")
    .meta({ examples: ["prod"] }),
  defaultByteLength: z
    .int()
    .optional()
    .describe("Default length of new keys, in bytes.")
    .meta({ examples: [24] }),
  ipAllowList: z
    .array(z.string().meta({ examples: ["10.0.0.0/8"] }))
    .optional()
    .describe("Allow-list: keys of the API can be used only from these addresses. Omitted if any address is allowed."),
  manager: z
    .string()
    .optional()
    .describe("Manager of the API: `<cluster>/<kind>/<namespace>/<name>` of its manifest.")
    .meta({ examples: ["main/Api/shop/payments"] }),
  createdAt: unixMs("When the API was created, Unix milliseconds."),
});
type ListedApi = z.input<typeof ListedApi>;

const required = { readApi: onApi("read_api") };

export const listApis = defineListProcedure({
  path: "admin.listApis",
  effect: "read",
  summary: "List the APIs",
  description:
    "Lists the APIs that the caller is allowed to read, in the order of their ids. Counts up to 10,000 keys per API.",
  permissions: required,
  errors: [],
  addition: true,
  body: Body,
  item: ListedApi,
  paginated: true,
  handle,
});

async function handle(call: Call<Body, typeof required>): Promise<Page<ListedApi>> {
  const { body, caller } = call;
  const { limit, cursor = "" } = body;
  const apiIds = call.idsHeld(required.readApi);
  if (apiIds.length === 0) call.require(required.readApi);
  // Reads one extra row. If it exists, there is a next page, which starts with this row.
  const question = {
    workspaceId: caller.workspaceId,
    apiIds,
    cursor,
    rowsMax: limit + 1,
    countedMax: COUNTED_KEYS_MAX + 1,
  };
  const rows = await readPage(call, body.search, {
    all: (db) => listApisWithCounts(db, { ...question, search: "" }),
    fitting: (db, search) => listApisWithCounts(db, { ...question, search }),
  });
  const items = rows.slice(0, limit).map(
    (row): ListedApi => ({
      ...describeApi(row),
      keys: { count: Math.min(row.keys, COUNTED_KEYS_MAX), hasMore: row.keys > COUNTED_KEYS_MAX },
    }),
  );
  return { items, cursor: rows[limit]?.id };
}
