import type { PersonRole } from "../permissions/person-roles.ts";

/* Data about the signed-in user, which the api-server sends to the dashboard at `/dashboard/session`. Timestamps are Unix ms. */

export interface Session {
  readonly person: {
    readonly name: string;
    readonly email: string | null;
    readonly signedInBy: "link" | "oidc";
    /** Group names from the identity provider; empty for a user with a sign-in link. */
    readonly groups: readonly string[];
  };
  /** Workspaces that the user may access, sorted by name. */
  readonly workspaces: readonly SessionWorkspace[];
  readonly hasMoreWorkspaces: boolean;
  /** Whether the user is an admin of all workspaces, and therefore of the installation. */
  readonly isInstallationAdmin: boolean;
  /** All active sessions of the user, including this one, newest first. */
  readonly sessions: readonly OpenSession[];
}

export interface SessionWorkspace {
  readonly id: string;
  readonly name: string;
  /** If false, every call in the workspace is rejected. */
  readonly enabled: boolean;
  readonly role: PersonRole;
}

export interface OpenSession {
  readonly id: string;
  /** Whether this session belongs to the requesting browser. */
  readonly isThis: boolean;
  readonly address: string | null;
  readonly userAgent: string | null;
  readonly createdAt: number;
  readonly lastSeenAt: number;
  readonly expiresAt: number;
}
