import { makeId } from "../../../core/ids.ts";
import { hashKey } from "../../../core/keys/key-string.ts";
import type { PersonRole } from "../../../core/permissions/person-roles.ts";
import type { SessionRow } from "../../db/sessions.ts";
import { endSignInLink, insertSignInLink, type LinkScope } from "../../db/sign-in-links.ts";
import { inTransaction } from "../../db/transaction.ts";
import { type Administrator, insertAdministration } from "./administrator.ts";

/** Issuer of a person who signs in with a link. Whoever made the link vouches for the person who uses it. */
export const LINK_ISSUER = "postern:link";

/** Lifetime of a link: long enough to paste it into a browser, but so short that a link found later in a terminal's history is useless. */
export const LINK_LIVES_MS = 5 * 60_000;

export const PERSON_NAME_LENGTH_MAX = 255;

const TOKEN_BYTES = 32;

export interface SignInLink {
  readonly linkId: string;
  /** The secret token. It is not stored. */
  readonly token: string;
  readonly expiresAt: number;
}

/**
 * Creates a link that signs one person in and can be used only once. Without a `workspaceId`, the link is valid for all workspaces.
 * @param logWorkspaceId the workspace whose audit log records the link.
 */
export async function makeSignInLink(
  administrator: Administrator,
  {
    name,
    role,
    workspaceId,
    logWorkspaceId,
    madeIn,
  }: {
    name: string;
    role: PersonRole;
    workspaceId: string | undefined;
    logWorkspaceId: string;
    /** Session of the creator. Default: the creator is a command or a root key. */
    madeIn?: Pick<SessionRow, "id" | "signed_in_by" | "expires_at"> | undefined;
  },
): Promise<SignInLink> {
  const { actor, nowMs, randomBytes } = administrator;
  return inTransaction(administrator, async (tx) => {
    const token = Buffer.from(randomBytes(TOKEN_BYTES)).toString("base64url");
    const linkId = makeId("signInLink", randomBytes(16));
    const createdAt = nowMs();
    // A session opened by a link cannot create links whose sessions last longer than itself: otherwise, its person could stay signed in
    // indefinitely.
    const sessionExpiresAt = madeIn?.signed_in_by === "link" ? madeIn.expires_at : null;
    const expiresAt = Math.min(createdAt + LINK_LIVES_MS, sessionExpiresAt ?? Number.POSITIVE_INFINITY);
    await insertSignInLink(tx, {
      id: linkId,
      tokenHash: hashKey(token),
      name,
      role,
      workspaceId: workspaceId ?? null,
      madeBy: actor.type === "rootkey" ? `root key ${actor.name}` : actor.name,
      madeBySession: madeIn?.id ?? null,
      sessionExpiresAt,
      createdAt,
      expiresAt,
    });
    await insertAdministration(tx, administrator, logWorkspaceId, [
      {
        event: "signInLink.create",
        description: `Made the sign-in link ${linkId} for ${name}: ${role} of ${workspaceId ?? "all workspaces"}`,
        targets: [{ type: "signInLink", id: linkId, name }],
      },
    ]);
    return { linkId, token, expiresAt };
  });
}

/** Invalidates an open link. Returns false if there is no such link. */
export async function revokeSignInLink(
  administrator: Administrator,
  { linkId, ...scope }: Omit<LinkScope, "nowMs"> & { linkId: string },
): Promise<boolean> {
  return inTransaction(administrator, async (tx) => {
    const link = await endSignInLink(tx, { linkId, ...scope, nowMs: administrator.nowMs() });
    if (link === undefined) return false;
    await insertAdministration(tx, administrator, scope.workspaceId, [
      {
        event: "signInLink.delete",
        description: `Revoked the sign-in link ${linkId} for ${link.name}`,
        targets: [{ type: "signInLink", id: linkId, name: link.name }],
      },
    ]);
    return true;
  });
}

/**
 * Returns the URL that a person opens. The token is in the fragment, which browsers do not send to servers, so neither proxy logs nor the
 * Referer header contain the token.
 */
export const signInAddress = (dashboardUrl: string, token: string): string =>
  `${dashboardUrl.replace(/\/+$/, "")}/dashboard/sign-in#token=${token}`;
