import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Copy, Part, Recipe } from "./recipe.ts";

/* `v1/apis.countKeys` reads, and the published client does not have it. */

const fixture = (name: string): string => readFileSync(join(import.meta.dirname, "add-a-v1-procedure", name), "utf8");

const OPENAPI_DIGESTS = "docs/reference/openapi.sha256";
const REQUIRED_PERMISSIONS = "api-server/test/required-permissions.test.ts";
const PUBLISHED_CLIENT = "test/conformance/published-client-v1.test.ts";

const expected: Part = {
  step: 3,
  file: "api-server/test/permissions-expected-v1.ts",
  after: '  "v1/apis.createApi": { needs: ["api.*.create_api"] },\n',
  text: '  "v1/apis.countKeys": { needs: [api("read_api"), api("read_key")] },\n',
};
const reference: Part = {
  step: 4,
  file: "docs/reference/api-v1.md",
  after: "| `apis.deleteKeys` | `keys.deleteKey` |\n",
  text: "| `apis.countKeys` | `apis.listKeys` |\n",
};
const notInTheClient: Part = {
  step: 4,
  file: PUBLISHED_CLIENT,
  after: "const NOT_IN_THE_CLIENT: readonly string[] = [\n",
  text: '  "apis.countKeys",\n',
};

const without = (part: Part) => ({ leaveOut: (copy: Copy) => copy.replace(part.file, part.text, "") });

export const addAV1Procedure: Recipe = {
  heading: "Add a v1 procedure",
  parts: [
    { step: 1, file: "api-server/v1/apis/countKeys.ts", text: fixture("countKeys.ts.txt") },
    {
      step: 2,
      file: "api-server/v1/index.ts",
      after: 'import { getVerifications } from "./analytics/getVerifications.ts";\n',
      text: 'import { countKeys } from "./apis/countKeys.ts";\n',
    },
    { step: 2, file: "api-server/v1/index.ts", after: "  // apis\n", text: "  countKeys,\n" },
    { step: 3, file: "api-server/v1/apis/countKeys.test.ts", text: fixture("countKeys.test.ts.txt") },
    expected,
    {
      step: 3,
      file: "api-server/test/sample-calls-v1.ts",
      after: '  "v1/apis.getApi": { always: ofApi() },\n',
      text: '  "v1/apis.countKeys": { always: ofApi() },\n',
    },
    reference,
    notInTheClient,
  ],
  notTaken: { 5: "is run for all recipes" },
  lists: ["api-server/plugins/v1/openapi.test.ts", "test/docs/api-v1.test.ts", "scripts/generate.test.ts"],
  about: {
    words: ["countKeys", "published v1 client covers every v1 procedure"],
    files: [
      "api-server/v1/apis/countKeys.test.ts",
      REQUIRED_PERMISSIONS,
      "api-server/test/tenancy.test.ts",
      "api-server/test/effects.test.ts",
      PUBLISHED_CLIENT,
    ],
  },
  omissions: [
    {
      what: "what it asks of a root key",
      ...without(expected),
      noticedBy: {
        file: REQUIRED_PERMISSIONS,
        says: /v1\/apis\.countKeys is not in api-server\/test\/permissions-expected-v1\.ts/,
      },
    },
    {
      what: "the reference",
      ...without(reference),
      noticedBy: { file: "test/docs/api-v1.test.ts", says: /apis\.countKeys/ },
    },
    {
      what: "that the published client does not have it",
      ...without(notInTheClient),
      noticedBy: { file: PUBLISHED_CLIENT, says: /apis\.countKeys/ },
    },
    {
      what: "generating",
      leaveOut: (copy) => copy.restore(OPENAPI_DIGESTS),
      noticedBy: { file: "scripts/generate.test.ts", says: /docs\/reference\/openapi\.sha256/ },
    },
  ],
};
