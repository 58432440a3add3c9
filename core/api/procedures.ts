import type { components, paths } from "./types.ts";

/* The shapes of the v2 API as its clients in this project see them, by the name of the procedure. */

/** The procedures, `keys.createKey` and so on. */
export type Procedure = keyof paths extends `/v2/${infer Name}` ? Name : never;

type Post<P extends Procedure> = paths[`/v2/${P}`]["post"];
export type Input<P extends Procedure> = Post<P>["requestBody"]["content"]["application/json"];
export type Data<P extends Procedure> = Post<P>["responses"][200]["content"]["application/json"]["data"];

/** What several procedures share, such as `Schema<"Identity">`. */
export type Schema<Name extends keyof components["schemas"]> = components["schemas"][Name];

/** A fault of invalid input, with its place. */
export interface Fault {
  /** `body.policy.rules[0].mode` */
  readonly location: string;
  readonly message: string;
}
