import { buildOpenApi } from "../../api-server/plugins/openapi.ts";
import { procedures } from "../../api-server/v2/index.ts";
import type { Target } from "../generate.ts";

/** The document that the api-server serves at `/openapi.json`, for readers and for clients in other languages. */
export const openApi: Target = {
  name: "OpenAPI document",
  files: async () =>
    new Map([["docs/reference/openapi.json", `${JSON.stringify(buildOpenApi(procedures), null, 2)}\n`]]),
};
