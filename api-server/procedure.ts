import type * as z from "zod";
import type { ErrorKind } from "../core/errors.ts";
import type { PersonRole } from "../core/permissions/person-roles.ts";
import type { Assignment } from "../core/sessions/assignments.ts";
import type { Deps } from "./deps.ts";
import type { Grants, NeededPermission, NeededPermissions } from "./needed-permissions.ts";
import type { CallingActor } from "./store/audit.ts";
import type { SessionRow } from "./store/sessions.ts";

/*
 * The type of a procedure of v2; procedure-v1.ts has that of v1. One file per procedure, named after its path, exports one of these: its schemas, the permissions
 * that the root key needs, and its handler. Everything before a handler (size, header, body, root key, quota)
 * and everything after it (envelope, error body, request id) is in plugins/.
 */

/** The caller and its workspace. The call itself checks the caller's permissions. */
export interface Caller {
  readonly workspaceId: string;
  readonly actor: CallingActor;
  /** Of a person at the dashboard; absent for a root key. */
  readonly session?: CallerSession;
}

/** What a person may do here, and elsewhere. */
export interface CallerSession {
  readonly row: SessionRow;
  /** How long a session may be unused. */
  readonly idleMs: number;
  readonly assignments: readonly Assignment[];
  /** In the workspace of the call. */
  readonly role: PersonRole;
}

/** The headers of a client that manages objects, such as the operator (api-v2.md section 24.1). */
export interface Management {
  /** `<cluster>/<kind>/<namespace>/<name>`, undefined when the header was not sent. */
  readonly manager: string | undefined;
  readonly adopt: boolean;
  readonly release: boolean;
}

/** Details of the request, for audit rows, events and IP allow-lists. */
export interface Origin {
  readonly requestId: string;
  /** The client's address: that of the connection, or the one that a trusted proxy reports. */
  readonly clientIp: string;
  readonly userAgent: string | undefined;
}

/** A call without a root key, which some procedures of v1 serve. */
export interface OpenCall<Body> {
  /** The body; of a GET, which v1 has, what its query says. */
  readonly body: Body;
  readonly origin: Origin;
  readonly deps: Deps;
  /**
   * Returns a signal that is aborted when the client has gone, or was answered that its request took too long: work for it is then given up.
   * Made for those procedures alone that ask for it.
   */
  readonly untilGone: () => AbortSignal;
}

/** A call whose procedure declares `Needed`: the parameter of a helper that requires a permission. */
export interface CallNeeding<Body, Needed extends NeededPermission> extends OpenCall<Body>, Grants<Needed> {
  readonly caller: Caller;
  readonly management: Management;
}

/** `Permissions` are those that the procedure declares: its handler can require no others. */
export type Call<Body, Permissions extends NeededPermissions = Readonly<Record<never, never>>> = CallNeeding<
  Body,
  Permissions[keyof Permissions]
>;

/** The result of a handler that has serialized its data itself: JSON exactly as its schema would produce it. */
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
   * `change`: pods must learn of its effect, and the manager of the object matters. `read`: every object stays unchanged; counting
   * and spending do not count as changes.
   */
  readonly effect: "read" | "change";
  /** One line, imperative. */
  readonly summary: string;
  /** Some sentences for its callers, in Markdown. */
  readonly description: string;
  /** The permissions that the root key needs: all of them, each under its own condition. */
  readonly permissions: Permissions;
  /** Error kinds of this procedure, in addition to those of every procedure. */
  readonly errors: readonly ErrorKind[];
  /** Customers call it with every request of theirs: plain calls are served without fastify. Its data is made as its schema says, so that JSON is all it needs. */
  readonly isHot?: true;
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
  /** May return without a promise when there is nothing to wait for. */
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

/** Any procedure, where the type of its body does not matter: for the list of all, and for the code that serves them. */
export type AnyProcedure = (Omit<Procedure, "handle"> | Omit<ListProcedure, "handle">) & {
  readonly handle: (call: Call<never, NeededPermissions>) => Promise<unknown> | DataJson;
};

/** Returns the procedure unchanged; it only makes the handler's types follow from the schemas and the permissions. */
export const defineProcedure = <
  Body extends z.ZodType,
  Data extends z.ZodType,
  const Permissions extends NeededPermissions,
>(
  procedure: Procedure<Body, Data, Permissions>,
): Procedure<Body, Data, Permissions> => procedure;

/** The same for a list: its success body has `pagination` next to `data` (api-v2.md section 8). */
export const defineListProcedure = <
  Body extends z.ZodType,
  Item extends z.ZodType,
  const Permissions extends NeededPermissions,
>(
  procedure: ListProcedure<Body, Item, Permissions>,
): ListProcedure<Body, Item, Permissions> => procedure;
