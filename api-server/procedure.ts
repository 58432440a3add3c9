import type * as z from "zod";
import type { ErrorKind } from "../core/errors.ts";
import type { Deps } from "./deps.ts";
import type { Actor, Origin } from "./domain/actor.ts";
import type { RequiredPermission, RequiredPermissions } from "./domain/permissions/required-permissions.ts";

/*
 * Type of v2's procedures; for v1's, see v1/procedure.ts. Each procedure has its own file, named after its path, which exports its schemas,
 * the permissions that the root key needs, and its handler. Procedures that differ only in data share a file, such as `keys/links.ts`. The
 * steps before a handler (size, header, body, root key, quota) and after it (envelope, error body, request id) are in plugins/.
 */

/** A call without a root key. Only some procedures of v1 accept such calls. */
export interface OpenCall<Body> {
  /** The body or, for a GET of v1, the parsed query string. */
  readonly body: Body;
  readonly origin: Origin;
  readonly deps: Deps;
  /**
   * Returns a signal that is aborted when the client disconnects or the request times out, so that the work can stop. Created on first use.
   */
  readonly untilDisconnected: () => AbortSignal;
}

/** A call of a procedure that declares the permissions `Required`. Helpers that require permissions use it as their parameter type. */
export interface CallNeeding<Body, Required extends RequiredPermission> extends OpenCall<Body>, Actor<Required, Deps> {
  readonly deps: Deps;
}

/** A call. `Permissions` are the permissions that the procedure declares; its handler cannot require any others. */
export type Call<Body, Permissions extends RequiredPermissions = Readonly<Record<never, never>>> = CallNeeding<
  Body,
  Permissions[keyof Permissions]
>;

/** Result of a handler that has serialized its data itself: JSON exactly as its schema would produce it. */
export class DataJson {
  readonly json: string;

  constructor(json: string) {
    this.json = json;
  }
}

export interface Page<Item> {
  readonly items: readonly Item[];
  /** Id of the first row of the next page; `undefined` on the last page. */
  readonly cursor: string | undefined;
}

interface Documented<Permissions extends RequiredPermissions = RequiredPermissions> {
  /** Name of the procedure: `keys.createKey` is served as `POST /v2/keys.createKey`. */
  readonly path: `${string}.${string}`;
  /**
   * `change`: the call changes objects, so its effect must reach the pods, and the manager of the object is checked. `read`: the call
   * changes no object; counting and spending do not count as changes.
   */
  readonly effect: "read" | "change";
  /** Title in the API reference: one line, in the imperative. */
  readonly summary: string;
  /** Description for callers, in Markdown. */
  readonly description: string;
  /** Permissions that the root key needs. A permission with a condition is needed only if the condition applies. */
  readonly permissions: Permissions;
  /** Error kinds of this procedure, in addition to the common ones. */
  readonly errors: readonly ErrorKind[];
  /**
   * Whether customers call the procedure once per request that they receive. Simple calls of such a procedure are served without fastify.
   * Its data must conform to the schema, because it is serialized as plain JSON.
   */
  readonly isHot?: true;
  /** Whether the procedure is marked `x-postern-addition` in the OpenAPI document (api-v2.md section 24). */
  readonly addition?: true;
}

export interface Procedure<
  Body extends z.ZodType = z.ZodType,
  Data extends z.ZodType = z.ZodType,
  Permissions extends RequiredPermissions = RequiredPermissions,
> extends Documented<Permissions> {
  readonly body: Body;
  readonly data: Data;
  readonly paginated?: false;
  /** Handles a call. Can return a value instead of a promise if there is nothing to wait for. */
  readonly handle: (call: Call<z.output<Body>, Permissions>) => Promise<z.input<Data>> | DataJson | Promise<DataJson>;
}

export interface ListProcedure<
  Body extends z.ZodType = z.ZodType,
  Item extends z.ZodType = z.ZodType,
  Permissions extends RequiredPermissions = RequiredPermissions,
> extends Documented<Permissions> {
  readonly body: Body;
  /** Schema of one item. */
  readonly item: Item;
  readonly paginated: true;
  readonly handle: (call: Call<z.output<Body>, Permissions>) => Promise<Page<z.input<Item>>>;
}

/** Any procedure, with any body type; for the list of all procedures, and for the code that serves them. */
export type AnyProcedure = (Omit<Procedure, "handle"> | Omit<ListProcedure, "handle">) & {
  readonly handle: (call: Call<never, RequiredPermissions>) => Promise<unknown> | DataJson;
};

/** Returns the procedure unchanged, so that the handler's types are inferred from the schemas and the permissions. */
export const defineProcedure = <
  Body extends z.ZodType,
  Data extends z.ZodType,
  const Permissions extends RequiredPermissions,
>(
  procedure: Procedure<Body, Data, Permissions>,
): Procedure<Body, Data, Permissions> => procedure;

/** Like `defineProcedure`, but for a list: the success body has `pagination` next to `data` (api-v2.md section 8). */
export const defineListProcedure = <
  Body extends z.ZodType,
  Item extends z.ZodType,
  const Permissions extends RequiredPermissions,
>(
  procedure: ListProcedure<Body, Item, Permissions>,
): ListProcedure<Body, Item, Permissions> => procedure;
