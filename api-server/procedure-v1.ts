import type * as z from "zod";
import type { ErrorKind } from "../core/errors.ts";
import type { NeededPermissions } from "./needed-permissions.ts";
import type { Call, DataJson, OpenCall } from "./procedure.ts";

/*
 * The type of a procedure of v1. As in v2 each has a file, named after its path, with its schemas, the permissions that the root
 * key needs, and its handler, which can require no others. Handlers of v1 only translate: what a key, an API or a limit is stands
 * in domain/. The order of steps, the error body, the headers and the switch are in plugins/.
 */

interface Documented {
  /** `apis.getApi`: served at `/v1/apis.getApi`. A leftover has slashes, and parameters that become members of its input. */
  readonly path: string;
  /** A GET takes its input from the query, a POST from the body. */
  readonly method: "GET" | "POST";
  /** Path of the v2 procedure that takes its place: `keys.createKey`. Every answer names it. */
  readonly successor: string;
  /** As in v2 (`Procedure` in procedure.ts). */
  readonly effect: "read" | "change";
  /** One line, imperative. */
  readonly summary: string;
  /** Some sentences for its callers, in Markdown. */
  readonly description: string;
  /** Error kinds of this procedure, in addition to those of every procedure. */
  readonly errors: readonly ErrorKind[];
  /** 202 when the work is done later. */
  readonly status?: 202;
}

interface Shaped<Input extends z.ZodType, Answer extends z.ZodType> extends Documented {
  /** Not strict: unknown members are ignored. For a GET an object of texts, numbers, booleans, and lists of these. */
  readonly input: Input;
  /** Rules between fields that need no data. Runs before the root key is looked at; throws PublicError 400 (`invalidField`). */
  readonly check?: (input: z.output<Input>) => void;
  /** The whole body of the answer: v1 has no envelope. */
  readonly answer: Answer;
  /** Bodies that come with another status, as `OtherAnswer`. */
  readonly otherAnswers?: Readonly<Record<number, z.ZodType>>;
}

/** The answer of a handler whose status is not that of its procedure. */
export class OtherAnswer {
  readonly status: number;
  readonly body: unknown;

  constructor(status: number, body: unknown) {
    this.status = status;
    this.body = body;
  }
}

type Answered<Answer extends z.ZodType> = Promise<z.input<Answer> | OtherAnswer> | DataJson | Promise<DataJson>;

export interface V1Procedure<
  Input extends z.ZodType = z.ZodType,
  Answer extends z.ZodType = z.ZodType,
  Permissions extends NeededPermissions = NeededPermissions,
> extends Shaped<Input, Answer> {
  readonly permissions: Permissions;
  /** May return without a promise when there is nothing to wait for. */
  readonly handle: (call: Call<z.output<Input>, Permissions>) => Answered<Answer>;
}

/** A procedure that needs no root key (api-v1.md section 3). Larger bodies are refused, because everybody may send one. */
export interface OpenV1Procedure<Input extends z.ZodType = z.ZodType, Answer extends z.ZodType = z.ZodType>
  extends Shaped<Input, Answer> {
  readonly permissions: "none";
  readonly handle: (call: OpenCall<z.output<Input>>) => Answered<Answer>;
}

type AnyClosed = Omit<V1Procedure, "handle" | "check"> & {
  readonly check?: (input: never) => void;
  readonly handle: (call: Call<never, NeededPermissions>) => Promise<unknown> | DataJson;
};

type AnyOpen = Omit<OpenV1Procedure, "handle" | "check"> & {
  readonly check?: (input: never) => void;
  readonly handle: (call: OpenCall<never>) => Promise<unknown> | DataJson;
};

/** Any procedure of v1, where the types of its input and answer do not matter. */
export type AnyV1Procedure = AnyClosed | AnyOpen;

/** Whether it needs no root key. */
export const isOpen = (procedure: AnyV1Procedure): procedure is AnyOpen => procedure.permissions === "none";

/** Returns the procedure unchanged; it only makes the handler's types follow from the schemas and the permissions. */
export const defineV1Procedure = <
  Input extends z.ZodType,
  Answer extends z.ZodType,
  const Permissions extends NeededPermissions,
>(
  procedure: V1Procedure<Input, Answer, Permissions>,
): V1Procedure<Input, Answer, Permissions> => procedure;

/** The same for a procedure without a root key. */
export const defineOpenV1Procedure = <Input extends z.ZodType, Answer extends z.ZodType>(
  procedure: OpenV1Procedure<Input, Answer>,
): OpenV1Procedure<Input, Answer> => procedure;
