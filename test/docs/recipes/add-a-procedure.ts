import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Part, Recipe } from "./recipe.ts";

/* `apis.archiveApi` disables all keys of an API: a change, of an object that a manifest may manage, which pods notice. */

const fixture = (name: string): string => readFileSync(join(import.meta.dirname, "add-a-procedure", name), "utf8");

const PROCEDURE = "api-server/v2/apis/archiveApi.ts";
const OPENAPI_DIGESTS = "docs/reference/openapi.sha256";
const REFERENCE = "docs/reference/api-v2.md";
const ROLES = "api-server/test/roles.test.ts";
const REQUIRED_PERMISSIONS = "api-server/test/required-permissions.test.ts";

const expected: Part = {
  step: 5,
  file: "api-server/test/permissions-expected.ts",
  after: "export const EXPECTED: Readonly<Record<string, Expected>> = {\n",
  text: '  "apis.archiveApi": { needs: [api("update_api")], lookedUpFirst: ["apiId"] },\n',
};
const leastRole: Part = {
  step: 5,
  file: "api-server/test/roles-expected.ts",
  after: "const OPERATOR = [\n",
  text: '  "apis.archiveApi",\n',
};
const sampleCall: Part = {
  step: 5,
  file: "api-server/test/sample-calls.ts",
  after: '  "apis.deleteApi": { always: ofApi() },\n',
  text: '  "apis.archiveApi": { always: ofApi() },\n',
};
const noticed: Part = {
  step: 6,
  file: "test/faults/noticed-changes.ts",
  after: "export const NOTICED: Noticed = {\n",
  text: `  "apis.archiveApi": {
    "its keys are disabled": becomes("VALID", "DISABLED", async ({ resources, apiId }) => {
      const { key } = await resources.key({ apiId });
      return { key, body: { apiId } };
    }),
  },
`,
};
const reference: readonly Part[] = [
  {
    step: 7,
    file: REFERENCE,
    after: "- `apis.updateApi`, `ratelimit.deleteNamespace`: 404 → 403 → 409\n",
    text: "- `apis.archiveApi`: 404 → 403 → 409\n",
  },
];

const without = (part: Part) => ({
  leaveOut: (copy: Parameters<Recipe["omissions"][number]["leaveOut"]>[0]) => copy.replace(part.file, part.text, ""),
});

export const addAProcedure: Recipe = {
  heading: "Add a procedure",
  parts: [
    { step: 1, file: PROCEDURE, text: fixture("archiveApi.ts.txt") },
    {
      step: 2,
      file: "api-server/db/apis.ts",
      after: `export interface ApiRef {
  readonly workspaceId: string;
  readonly apiId: string;
}
`,
      text: `
/** Disables those that are enabled. Returns how many these were. */
export async function disableKeysOfApi(
  tx: Queryable,
  { workspaceId, apiId, updatedAt }: ApiRef & { updatedAt: number },
): Promise<number> {
  const text = \`update keys k
                   set enabled = false, updated_at = $3
                 where k.workspace_id = $1 and k.api_id = $2 and k.enabled and k.deleted_at is null\`;
  const { rowCount } = await tx.query({ name: "disable-keys-of-api", text, values: [workspaceId, apiId, updatedAt] });
  return rowCount ?? 0;
}
`,
    },
    {
      step: 3,
      file: "api-server/v2/index.ts",
      after: 'import type { AnyProcedure } from "../procedure.ts";\n',
      text: 'import { archiveApi } from "./apis/archiveApi.ts";\n',
    },
    {
      step: 3,
      file: "api-server/v2/index.ts",
      after: "export const procedures: readonly AnyProcedure[] = [\n",
      text: "  archiveApi,\n",
    },
    { step: 5, file: "api-server/v2/apis/archiveApi.test.ts", text: fixture("archiveApi.test.ts.txt") },
    expected,
    leastRole,
    sampleCall,
    noticed,
    ...reference,
  ],
  notTaken: { 4: "what verification needs to know stays as it is", 8: "is run for all recipes" },
  lists: [
    "api-server/plugins/openapi.test.ts",
    "test/docs/api-v2.test.ts",
    "test/faults/noticed-changes.test.ts",
    "scripts/generate.test.ts",
  ],
  about: {
    words: ["archiveApi"],
    files: [
      "api-server/v2/apis/archiveApi.test.ts",
      REQUIRED_PERMISSIONS,
      "api-server/test/tenancy.test.ts",
      "api-server/test/effects.test.ts",
      ROLES,
      "test/faults/propagation-of-changes.test.ts",
    ],
  },
  omissions: [
    {
      what: "what it asks of a root key",
      ...without(expected),
      noticedBy: {
        file: REQUIRED_PERMISSIONS,
        says: /apis\.archiveApi is not in api-server\/test\/permissions-expected\.ts/,
      },
    },
    {
      what: "the role of a person",
      ...without(leastRole),
      noticedBy: { file: ROLES, says: /apis\.archiveApi: put it into api-server\/test\/roles-expected\.ts/ },
    },
    {
      what: "a call that succeeds",
      ...without(sampleCall),
      noticedBy: { file: "api-server/test/effects.test.ts", says: /apis\.archiveApi has no sample call/ },
      alone: true,
    },
    {
      what: "what pods notice",
      ...without(noticed),
      noticedBy: {
        file: "test/faults/noticed-changes.test.ts",
        says: /what pods notice of apis\.archiveApi is not said/,
      },
    },
    {
      what: "the reference",
      leaveOut: async (copy) => {
        for (const { file, after = "", text } of reference) await copy.replace(file, after + text, after);
      },
      noticedBy: { file: "test/docs/api-v2.test.ts", says: /apis\.archiveApi/ },
    },
    {
      what: "generating",
      leaveOut: (copy) => copy.restore(OPENAPI_DIGESTS),
      noticedBy: { file: "scripts/generate.test.ts", says: /docs\/reference\/openapi\.sha256/ },
    },
    {
      what: "who manages the API",
      leaveOut: (copy) => copy.replace(PROCEDURE, /guardManaged\(.*\)/, "api.manager"),
      noticedBy: { file: "api-server/test/effects.test.ts", says: /rejects changes of an object of another manager/ },
    },
  ],
};
