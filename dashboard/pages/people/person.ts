import type { Data, Procedure } from "../../../core/api/procedures.ts";
import type { Row } from "../../api/queries.ts";

export type Person = Row<"admin.listPeople">;
export type PersonDetails = Data<"admin.getPerson">;
export type OpenSession = PersonDetails["openSessions"][number];
export type SignInLink = Row<"admin.listSignInLinks">;

/** Procedures whose cached responses become stale when a session or a link ends. */
export const SHOWN_BY: readonly Procedure[] = ["admin.listPeople", "admin.getPerson", "admin.listSignInLinks"];

export const roleText = ({ role, allWorkspaces }: { role: string; allWorkspaces: boolean }): string =>
  allWorkspaces ? `${role} of all workspaces` : role;

export const signedInByText = ({ signedInBy, linkMadeBy }: Pick<Person, "signedInBy" | "linkMadeBy">): string =>
  signedInBy === "oidc" ? "OpenID provider" : `link from ${linkMadeBy ?? "an administrator"}`;

export const byAccountMenu = "This is your own session: sign out in the account menu.";
