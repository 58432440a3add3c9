import type { components, paths } from "./types.ts";

/* Request and response types of the v2 API procedures, for this project's API clients. */

/** Procedure names such as `keys.createKey`. */
export type Procedure = keyof paths extends `/v2/${infer Name}` ? Name : never;

type Post<P extends Procedure> = paths[`/v2/${P}`]["post"];
export type Input<P extends Procedure> = Post<P>["requestBody"]["content"]["application/json"];
export type Data<P extends Procedure> = Post<P>["responses"][200]["content"]["application/json"]["data"];

/** An OpenAPI schema component that several procedures share, such as `Schema<"Identity">`. */
export type Schema<Name extends keyof components["schemas"]> = components["schemas"][Name];

/** A validation error with its location. */
export interface FieldProblem {
  /** Location such as `body.policy.rules[0].mode`. */
  readonly location: string;
  readonly message: string;
}
