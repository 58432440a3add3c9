import * as z from "zod";
import { TenancySettings } from "../../operator/tenancy/settings.ts";
import type { Target } from "../generate.ts";

/** Generates the JSON schema of `postern operator --tenancy-file`, for editors and pipelines. */
export const tenancySchema: Target = {
  name: "schema of the tenancy settings",
  files: async () =>
    new Map([
      [
        "docs/reference/tenancy.schema.json",
        `${JSON.stringify(z.toJSONSchema(TenancySettings, { io: "input" }), null, 2)}\n`,
      ],
    ]),
};
