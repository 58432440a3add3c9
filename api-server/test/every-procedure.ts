import type { RequiredPermission } from "../domain/permissions/required-permissions.ts";
import { type JsonSchema, requestSchema } from "../plugins/json-schema.ts";
import { buildOpenApi } from "../plugins/openapi.ts";
import { buildV1OpenApi } from "../plugins/v1/openapi.ts";
import { v1Procedures } from "../v1/index.ts";
import { isOpen } from "../v1/procedure.ts";
import { procedures } from "../v2/index.ts";
import type { Reply } from "./app.ts";
import { findReferences, type OpenApi, type Reference } from "./references.ts";
import { isOfV1 } from "./request.ts";
import { type MakeCall, SAMPLE_CALLS } from "./sample-calls.ts";
import { V1_SAMPLE_CALLS } from "./sample-calls-v1.ts";

/* The procedures of v1 and v2, for tests that call every one of them. A v1 procedure has a name such as `v1/apis.getApi`. */

export interface AProcedure {
  readonly path: string;
  readonly effect: "read" | "change";
  readonly permissions: readonly RequiredPermission[];
  /** Whether the procedure needs no root key. */
  readonly isOpen: boolean;
  /** JSON schema of the request. */
  readonly schema: JsonSchema;
}

export const everyProcedure: readonly AProcedure[] = [
  ...procedures.map(({ path, effect, permissions, body }) => ({
    path,
    effect,
    schema: requestSchema(body, "draft-7"),
    permissions: Object.values<RequiredPermission>(permissions),
    isOpen: false,
  })),
  ...v1Procedures.map((procedure) => ({
    path: `v1/${procedure.path}`,
    effect: procedure.effect,
    schema: requestSchema(procedure.input, "draft-7"),
    permissions: isOpen(procedure) ? [] : Object.values<RequiredPermission>(procedure.permissions),
    isOpen: isOpen(procedure),
  })),
];

/** Returns, by procedure path, the request fields that refer to objects. */
export const everyReference = (): Map<string, readonly Reference[]> =>
  new Map([
    ...findReferences(buildOpenApi(procedures) as unknown as OpenApi),
    ...findReferences(buildV1OpenApi(v1Procedures) as unknown as OpenApi),
  ]);

/** Returns the sample calls of a procedure. Throws if the table of sample calls lacks the procedure. */
export function sampleCallsOf(path: string): Readonly<Record<string, MakeCall>> & { always: MakeCall } {
  const [calls, file] = isOfV1(path)
    ? [V1_SAMPLE_CALLS[path], "sample-calls-v1.ts"]
    : [SAMPLE_CALLS[path], "sample-calls.ts"];
  if (calls === undefined) throw new Error(`${path} has no sample call: add one to api-server/test/${file}`);
  return calls;
}

/** Returns the data of a successful response; v1 has no envelope. */
export const dataOf = (path: string, { body }: Reply) => (isOfV1(path) ? body : body.data);

export const isSuccess = ({ status }: Reply): boolean => status === 200 || status === 202;
