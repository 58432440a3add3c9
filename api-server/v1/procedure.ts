import type * as z from "zod";
import type { ErrorKind } from "../../core/errors.ts";
import type { RequiredPermissions } from "../domain/permissions/required-permissions.ts";
import type { Call, DataJson, OpenCall } from "../procedure.ts";

/*
 * Type of v1's procedures. As in v2, the file of a procedure contains its schemas, its handler, and the permissions that the root key
 * needs; the handler cannot require others. v1's handlers only translate requests and responses: the rules for keys, APIs and limits are in
 * domain/. The order of steps, the error body, the headers and the switch that disables v1 are in plugins/.
 */

interface Documented {
  /**
   * Name of the procedure: `apis.getApi` is served at `/v1/apis.getApi`. A name with slashes is a complete, unversioned path. If it
   * contains parameters, they become members of the input.
   */
  readonly path: string;
  /** HTTP method. For a GET, the input is the query string; for a POST, it is the body. */
  readonly method: "GET" | "POST";
  /** Path of the v2 procedure that replaces this one, such as `keys.createKey`. A header of every response refers to it. */
  readonly successor: string;
  /** Effect, with the same meaning as in `Procedure` of procedure.ts. */
  readonly effect: "read" | "change";
  /** Title in the API reference: one line, in the imperative. */
  readonly summary: string;
  /** Description for callers, in Markdown. */
  readonly description: string;
  /** Error kinds of this procedure, in addition to the common ones. */
  readonly errors: readonly ErrorKind[];
  /** Status of a successful response; 202 if the work is done later, otherwise 200. */
  readonly status?: 202;
}

interface Shaped<Input extends z.ZodType, Answer extends z.ZodType> extends Documented {
  /** Schema of the input. Unknown members are ignored. For a GET, it must be an object of strings, numbers, booleans and lists of these. */
  readonly input: Input;
  /**
   * Validates rules that relate several fields and can be checked without reading data. Runs before the root key is verified. Throws
   * PublicError 400 (`invalidField`).
   */
  readonly check?: (input: z.output<Input>) => void;
  /** Schema of the complete response body, because v1 has no envelope. */
  readonly response: Answer;
  /** Schemas of response bodies with other statuses. Handlers return such a body as an `OtherResponse`. */
  readonly otherResponses?: Readonly<Record<number, z.ZodType>>;
}

/** A handler's response whose status differs from the procedure's `status`. */
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
  /** Handles a call. Can return a value instead of a promise if there is nothing to wait for. */
  readonly handle: (call: Call<z.output<Input>, Permissions>) => Answered<Answer>;
}

/** A procedure that is called without a root key (api-v1.md section 3). Its body limit is smaller, because anyone can send a request. */
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
