import type { PersonRole } from "../permissions/person-roles.ts";

/* What the api-server tells the dashboard of the person who is signed in, at `/dashboard/session`. Instants are Unix ms. */

export interface Session {
  readonly person: {
    readonly name: string;
    readonly email: string | null;
    readonly signedInBy: "link" | "oidc";
    /** As the provider named them; none of a person who came by a link. */
    readonly groups: readonly string[];
  };
  /** Those that the person may enter, by name. */
  readonly workspaces: readonly SessionWorkspace[];
  readonly hasMoreWorkspaces: boolean;
  /** An admin of all workspaces, who administers the installation too. */
  readonly isInstallationAdmin: boolean;
  /** Where the person is signed in: all that have not ended, this one too, newest first. */
  readonly sessions: readonly OpenSession[];
}

export interface SessionWorkspace {
  readonly id: string;
  readonly name: string;
  /** false: every call in it is refused. */
  readonly enabled: boolean;
  readonly role: PersonRole;
}

export interface OpenSession {
  readonly id: string;
  /** Whether it is the one of this browser. */
  readonly isThis: boolean;
  readonly address: string | null;
  readonly userAgent: string | null;
  readonly createdAt: number;
  readonly lastSeenAt: number;
  readonly expiresAt: number;
}
