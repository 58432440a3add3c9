import type { PersonRole } from "../../core/permissions/person-roles.ts";
import type { Assignment } from "../../core/sessions/assignments.ts";
import type { CallingActor } from "../db/audit.ts";
import type { SessionRow } from "../db/sessions.ts";
import type { ChangeDeps } from "./deps.ts";
import type { Managing } from "./managed/rules.ts";
import type { Grants, RequiredPermission } from "./permissions/required-permissions.ts";

/** A caller and the workspace of its call. */
export interface Caller {
  readonly workspaceId: string;
  readonly actor: CallingActor;
  /** Session of a dashboard user; `undefined` for a root key. */
  readonly session?: CallerSession;
}

/** Roles and session limits of a dashboard user. */
export interface CallerSession {
  readonly row: SessionRow;
  /** Maximum idle time of the session, ms. */
  readonly idleMs: number;
  readonly assignments: readonly Assignment[];
  /** Role in the workspace of the call. */
  readonly role: PersonRole;
}

/** Details of the request that audit rows, events and IP allow-lists need. */
export interface Origin {
  readonly requestId: string;
  /** Address of the client: the peer address of the connection or, behind a trusted proxy, the address that the proxy reports. */
  readonly clientIp: string;
  readonly userAgent: string | undefined;
}

/**
 * The actor of a use case: who acts, on behalf of which manager, and from where. It also has the actor's permissions and the use case's
 * dependencies. All other input of a use case is passed as arguments.
 */
export interface Actor<Required extends RequiredPermission = never, Deps = ChangeDeps>
  extends Grants<Required>,
    Managing {
  readonly caller: Caller;
  readonly origin: Origin;
  readonly deps: Deps;
}
