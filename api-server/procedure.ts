import type * as z from "zod";
import type { ErrorKind } from "../core/errors.ts";
import type { Deps } from "./deps.ts";
import type { Grants, NeededPermission, NeededPermissions } from "./needed-permissions.ts";

/*
 * The shape of a procedure. One file per procedure, wearing its path, exports one of these: its schemas, what the root
 * key must be allowed, and its handler. Everything that stands before every handler (size, header, body, root key, quota)
 * and everything after it (envelope, error body, request id) is in plugins/.
 */

/** Who calls, and for which workspace. What the root key may do is asked of the call. */
export interface Caller {
  readonly workspaceId: string;
  readonly rootKeyId: string;
  readonly rootKeyName: string | undefined;
}

/** The headers of a client that manages objects from somewhere else (api-v2.md section 24.1). */
export interface Management {
  /** `<cluster>/<kind>/<namespace>/<name>`, undefined when the header was not sent. */
  readonly manager: string | undefined;
  readonly adopt: boolean;
  readonly release: boolean;
}

/** What the request itself says, for audit rows, events and IP allow-lists. */
export interface Origin {
  readonly requestId: string;
  /** The client's address: the connection's, or what a trusted proxy says of it. */
  readonly clientIp: string;
  readonly userAgent: string | undefined;
}

/** A call of which `Needed` may be required: what a helper says that requires something of the root key. */
export interface CallNeeding<Body, Needed extends NeededPermission> extends Grants<Needed> {
  readonly body: Body;
  readonly caller: Caller;
  readonly management: Management;
  readonly origin: Origin;
  readonly deps: Deps;
}

/** `Permissions` are those that the procedure declares: its handler can require no others. */
export type Call<Body, Permissions extends NeededPermissions = Readonly<Record<never, never>>> = CallNeeding<
  Body,
  Permissions[keyof Permissions]
>;

/** What a handler gives that has written its data as JSON itself: text that is just as its schema would have it. */
export class DataJson {
  readonly json: string;

  constructor(json: string) {
    this.json = json;
  }
}

export interface Page<Item> {
  readonly items: readonly Item[];
  /** Id of the first row of the next page; undefined on the last one. */
  readonly cursor: string | undefined;
}

interface Documented<Permissions extends NeededPermissions = NeededPermissions> {
  /** `keys.createKey`: served as `POST /v2/keys.createKey`. */
  readonly path: `${string}.${string}`;
  /**
   * `change`: pods have to learn of what it does, and it minds who manages the object. `read`: it leaves every object as it was;
   * what it counts or spends is not one.
   */
  readonly effect: "read" | "change";
  /** One line, imperative. */
  readonly summary: string;
  /** Some sentences for the person who calls it; Markdown. */
  readonly description: string;
  /** What the root key must be allowed: all of these, each when it says so. */
  readonly permissions: Permissions;
  /** Kinds that this procedure adds to those which every procedure can give. */
  readonly errors: readonly ErrorKind[];
  /** Marked `x-postern-addition` in the OpenAPI document (api-v2.md section 24). */
  readonly addition?: true;
}

export interface Procedure<
  Body extends z.ZodType = z.ZodType,
  Data extends z.ZodType = z.ZodType,
  Permissions extends NeededPermissions = NeededPermissions,
> extends Documented<Permissions> {
  readonly body: Body;
  readonly data: Data;
  readonly paginated?: false;
  /** May answer at once where there is nothing to wait for. */
  readonly handle: (call: Call<z.output<Body>, Permissions>) => Promise<z.input<Data>> | DataJson | Promise<DataJson>;
}

export interface ListProcedure<
  Body extends z.ZodType = z.ZodType,
  Item extends z.ZodType = z.ZodType,
  Permissions extends NeededPermissions = NeededPermissions,
> extends Documented<Permissions> {
  readonly body: Body;
  /** The schema of one item. */
  readonly item: Item;
  readonly paginated: true;
  readonly handle: (call: Call<z.output<Body>, Permissions>) => Promise<Page<z.input<Item>>>;
}

/** Any procedure, where its body's type does not matter: the list of all of them, and what serves them. */
export type AnyProcedure = (Omit<Procedure, "handle"> | Omit<ListProcedure, "handle">) & {
  readonly handle: (call: Call<never, NeededPermissions>) => Promise<unknown> | DataJson;
};

/** Returns the procedure as it is; exists so that the handler's types follow from the schemas and the permissions. */
export const defineProcedure = <
  Body extends z.ZodType,
  Data extends z.ZodType,
  const Permissions extends NeededPermissions,
>(
  procedure: Procedure<Body, Data, Permissions>,
): Procedure<Body, Data, Permissions> => procedure;

/** The same for a list: its success body has `pagination` beside `data` (api-v2.md section 8). */
export const defineListProcedure = <
  Body extends z.ZodType,
  Item extends z.ZodType,
  const Permissions extends NeededPermissions,
>(
  procedure: ListProcedure<Body, Item, Permissions>,
): ListProcedure<Body, Item, Permissions> => procedure;
