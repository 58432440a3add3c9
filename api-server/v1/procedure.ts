import type * as z from "zod";
import type { ErrorKind } from "../../core/errors.ts";
import type { RequiredPermissions } from "../domain/permissions/required-permissions.ts";
import type { Call, DataJson, OpenCall } from "../procedure.ts";

/*
 * Procedure type of v1. As in v2, a file has the schemas of a procedure, its handler, and the permissions that the root key needs; the
 * handler can require no others. Handlers of v1 only translate requests and responses; the rules for keys, APIs and limits are in domain/.
 * The order of steps, the error body, the headers and the v1 switch are in plugins/.
 */

interface Documented {
  /**
   * Name of the procedure: `apis.getApi` is served at `/v1/apis.getApi`. An unversioned path has slashes, and parameters that become
   * members of the input.
   */
  readonly path: string;
  /** HTTP method: a GET takes its input from the query string, a POST from the body. */
  readonly method: "GET" | "POST";
  /** Path of the v2 procedure that replaces this one, such as `keys.createKey`; every response names it. */
  readonly successor: string;
  /** Effect, with the same meaning as in `Procedure` of procedure.ts. */
  readonly effect: "read" | "change";
  /** Title in the reference: one imperative line. */
  readonly summary: string;
  /** Description for callers, in Markdown. */
  readonly description: string;
  /** Error kinds of this procedure, in addition to the common ones. */
  readonly errors: readonly ErrorKind[];
  /** Status of a successful response; 202 if the work is done later, otherwise 200. */
  readonly status?: 202;
}

interface Shaped<Input extends z.ZodType, Answer extends z.ZodType> extends Documented {
  /** Schema of the input; unknown members are ignored. For a GET: an object of strings, numbers, booleans, and lists of these. */
  readonly input: Input;
  /** Validates rules between fields that need no data. It runs before the root key is verified. Throws PublicError 400 (`invalidField`). */
  readonly check?: (input: z.output<Input>) => void;
  /** Schema of the complete response body, because v1 has no envelope. */
  readonly response: Answer;
  /** Schemas of bodies with another status, which handlers return as `OtherResponse`. */
  readonly otherResponses?: Readonly<Record<number, z.ZodType>>;
}

/** A handler's response with a status other than that of its procedure. */
export class OtherResponse {
  readonly status: number;
  readonly body: unknown;

  constructor(status: number, body: unknown) {
    this.status = status;
    this.body = body;
  }
}

type Answered<Answer extends z.ZodType> = Promise<z.input<Answer> | OtherResponse> | DataJson | Promise<DataJson>;

export interface V1Procedure<
  Input extends z.ZodType = z.ZodType,
  Answer extends z.ZodType = z.ZodType,
  Permissions extends RequiredPermissions = RequiredPermissions,
> extends Shaped<Input, Answer> {
  readonly permissions: Permissions;
  /** Handles a call. It may return a value instead of a promise if it does not have to wait. */
  readonly handle: (call: Call<z.output<Input>, Permissions>) => Answered<Answer>;
}

/** A procedure that needs no root key (api-v1.md section 3). Its body limit is smaller, because anyone may send a request. */
export interface OpenV1Procedure<Input extends z.ZodType = z.ZodType, Answer extends z.ZodType = z.ZodType>
  extends Shaped<Input, Answer> {
  readonly permissions: "none";
  readonly handle: (call: OpenCall<z.output<Input>>) => Answered<Answer>;
}

type AnyClosed = Omit<V1Procedure, "handle" | "check"> & {
  readonly check?: (input: never) => void;
  readonly handle: (call: Call<never, RequiredPermissions>) => Promise<unknown> | DataJson;
};

type AnyOpen = Omit<OpenV1Procedure, "handle" | "check"> & {
  readonly check?: (input: never) => void;
  readonly handle: (call: OpenCall<never>) => Promise<unknown> | DataJson;
};

/** Any procedure of v1, with any input and response types. */
export type AnyV1Procedure = AnyClosed | AnyOpen;

/** Whether the procedure needs no root key. */
export const isOpen = (procedure: AnyV1Procedure): procedure is AnyOpen => procedure.permissions === "none";

/** Returns the procedure unchanged, so that the handler's types are inferred from the schemas and the permissions. */
export const defineV1Procedure = <
  Input extends z.ZodType,
  Answer extends z.ZodType,
  const Permissions extends RequiredPermissions,
>(
  procedure: V1Procedure<Input, Answer, Permissions>,
): V1Procedure<Input, Answer, Permissions> => procedure;

/** Like `defineV1Procedure`, but for a procedure without a root key. */
export const defineOpenV1Procedure = <Input extends z.ZodType, Answer extends z.ZodType>(
  procedure: OpenV1Procedure<Input, Answer>,
): OpenV1Procedure<Input, Answer> => procedure;
