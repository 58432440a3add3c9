import * as z from "zod";
import { RolesFile } from "../../api-server/sign-in/roles-file.ts";
import { TenancySettings } from "../../operator/tenancy/settings.ts";
import type { Target } from "./target.ts";

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

/** Generates the JSON schema of `postern api-server --dashboard-roles-file`, for editors and pipelines. */
export const rolesFileSchema: Target = {
  name: "schema of the roles of groups",
  files: async () =>
    new Map([
      [
        "docs/reference/dashboard-roles.schema.json",
        `${JSON.stringify(z.toJSONSchema(RolesFile, { io: "input" }), null, 2)}\n`,
      ],
    ]),
};
