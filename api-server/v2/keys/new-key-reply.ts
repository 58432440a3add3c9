import * as z from "zod";
import { KeyId } from "../schemas.ts";

/** Response of procedures that create a key. */
export const NewKey = z.strictObject({
  keyId: KeyId,
  key: z
    .string()
    .describe("The secret. It is shown only once, unless the key is recoverable.")
    .meta({ examples: ["prod_5Kd3NBUAdUnhyzen"] }),
});
export type NewKey = z.input<typeof NewKey>;
