import type { Data } from "../../../core/api/procedures.ts";

export type KeyDetails = Data<"admin.getKeyDetails">;
