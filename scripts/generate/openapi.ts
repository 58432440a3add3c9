import { createHash } from "node:crypto";
import { buildOpenApi } from "../../api-server/plugins/openapi.ts";
import { V1_DOCUMENTS } from "../../api-server/plugins/v1/index.ts";
import { procedures } from "../../api-server/v2/index.ts";
import type { Target } from "./target.ts";

const FOLDER = "docs/reference";

const toText = (document: object): string => `${JSON.stringify(document, null, 2)}\n`;

const documents = (): ReadonlyMap<string, string> =>
  new Map([
    ["openapi.json", toText(buildOpenApi(procedures))],
    ["openapi-v1.json", toText(V1_DOCUMENTS["/v1/openapi.json"]())],
  ]);

/**
 * Generates the documents that the api-server serves at `/openapi.json` and `/v1/openapi.json`, for readers and client generators. Git
 * ignores them.
 */
export const openApi: Target = {
  name: "OpenAPI documents",
  isIgnored: true,
  files: async () => new Map([...documents()].map(([name, text]) => [`${FOLDER}/${name}`, text])),
};

/**
 * Generates digests of the documents, in the format of `sha256sum --check`. The digests are in git, so each change of the API appears in a
 * diff.
 */
export const openApiDigests: Target = {
  name: "digests of the OpenAPI documents",
  files: async () => {
    const lines = [...documents()].map(
      ([name, text]) => `${createHash("sha256").update(text).digest("hex")}  ${name}\n`,
    );
    return new Map([[`${FOLDER}/openapi.sha256`, lines.join("")]]);
  },
};
