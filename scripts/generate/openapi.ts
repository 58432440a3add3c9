import { buildOpenApi } from "../../api-server/plugins/openapi.ts";
import { buildV1OpenApi } from "../../api-server/plugins/openapi-v1.ts";
import { v1Procedures } from "../../api-server/v1/index.ts";
import { procedures } from "../../api-server/v2/index.ts";
import type { Target } from "../generate.ts";

const toText = (document: object): string => `${JSON.stringify(document, null, 2)}\n`;

/** The documents that the api-server serves at `/openapi.json` and `/v1/openapi.json`, for readers and for clients in other languages. */
export const openApi: Target = {
  name: "OpenAPI documents",
  files: async () =>
    new Map([
      ["docs/reference/openapi.json", toText(buildOpenApi(procedures))],
      ["docs/reference/openapi-v1.json", toText(buildV1OpenApi(v1Procedures))],
    ]),
};
