import { makeId } from "../../../core/ids.ts";
import { hashKey } from "../../../core/keys/key-string.ts";
import type { PersonRole } from "../../../core/permissions/person-roles.ts";
import { insertSignInLink } from "../../db/sign-in-links.ts";
import { inTransaction } from "../../db/transaction.ts";
import { type Administrator, insertAdministration } from "./administrator.ts";

/**
 * Issuer of a person who signs in with a link. The person who created the link has access to the database, and therefore vouches for the
 * person who uses it.
 */
export const LINK_ISSUER = "postern:link";

/** Lifetime of a link: long enough to paste it into a browser, too short to find it later in the history of a terminal. */
export const LINK_LIVES_MS = 5 * 60_000;

export const PERSON_NAME_LENGTH_MAX = 255;

const TOKEN_BYTES = 32;

export interface SignInLink {
  readonly linkId: string;
  /** The secret token, which only the result contains. */
  readonly token: string;
  readonly expiresAt: number;
}

/**
 * Creates a link that signs one person in, once. Without a `workspaceId`, the link is valid for all workspaces.
 * @param logWorkspaceId the workspace whose audit log records the link.
 */
export async function makeSignInLink(
  administrator: Administrator,
  {
    name,
    role,
    workspaceId,
    logWorkspaceId,
  }: { name: string; role: PersonRole; workspaceId: string | undefined; logWorkspaceId: string },
): Promise<SignInLink> {
  const { actor, nowMs, randomBytes } = administrator;
  return inTransaction(administrator, async (tx) => {
    const token = Buffer.from(randomBytes(TOKEN_BYTES)).toString("base64url");
    const linkId = makeId("signInLink", randomBytes(16));
    const createdAt = nowMs();
    const expiresAt = createdAt + LINK_LIVES_MS;
    await insertSignInLink(tx, {
      id: linkId,
      tokenHash: hashKey(token),
      name,
      role,
      workspaceId: workspaceId ?? null,
      madeBy: actor.name,
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

/**
 * Returns the URL that a person opens. The token is in the fragment, which browsers do not send to servers, so that neither proxy logs nor
 * the Referer header contain the token.
 */
export const signInAddress = (dashboardUrl: string, token: string): string =>
  `${dashboardUrl.replace(/\/+$/, "")}/dashboard/sign-in#token=${token}`;
