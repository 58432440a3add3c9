import { type UseQueryResult, useQuery, useQueryClient } from "@tanstack/react-query";
import { createContext, useContext } from "react";
import { GRANTS_OF_INSTALLATION_ADMIN, grantsOfPerson } from "../../core/permissions/person-roles.ts";
import type { Session, SessionWorkspace } from "../../core/sessions/session.ts";
import { ApiError, UNREACHABLE } from "./api-error.ts";
import { DASHBOARD_HEADERS } from "./client.ts";

export const SESSION_KEY = ["session"] as const;

/** Interval at which the session is read again, so that an open page shows when the session has ended. */
const ASKED_EVERY_MS = 60_000;

export function useSessionQuery(report: (reached: boolean) => void): UseQueryResult<Session | null, ApiError> {
  return useQuery<Session | null, ApiError>({
    queryKey: SESSION_KEY,
    queryFn: ({ signal }) => readSession(signal, report),
    refetchInterval: ASKED_EVERY_MS,
  });
}

/** Returns a function that reads the session again, for use after a change that affects the session. */
export function useSessionAgain(): () => void {
  const client = useQueryClient();
  return () => void client.invalidateQueries({ queryKey: SESSION_KEY });
}

async function readSession(signal: AbortSignal, report: (reached: boolean) => void): Promise<Session | null> {
  let response: Response;
  try {
    response = await fetch("/dashboard/session", { headers: DASHBOARD_HEADERS, signal });
  } catch (error) {
    if (signal.aborted) throw error;
    report(false);
    throw new ApiError({ status: 0, kind: UNREACHABLE, detail: "The server did not respond.", cause: error });
  }
  report(true);
  if (!response.ok) {
    throw new ApiError({
      status: response.status,
      kind: "unknown",
      detail: `The server returned status ${response.status}.`,
    });
  }
  return ((await response.json()) as { data: { session: Session | null } }).data.session;
}

/** The signed-in person, with their data in the workspace that the page shows. */
export interface Place {
  readonly session: Session;
  readonly workspace: SessionWorkspace;
}

export const PlaceContext = createContext<Place | undefined>(undefined);

export function useWorkspace(): Place {
  const place = useContext(PlaceContext);
  if (place === undefined) throw new Error("usePlace stands outside of the shell");
  return place;
}

/**
 * Returns whether the person holds a tuple such as `workspace.*.create_root_key` in this workspace. Controls for actions without permission
 * are shown disabled and name the missing tuple; the server enforces the permission.
 */
export function useMay(): (tuple: string) => boolean {
  const { session, workspace } = useWorkspace();
  const held = session.isInstallationAdmin ? GRANTS_OF_INSTALLATION_ADMIN : grantsOfPerson(workspace.role);
  return (tuple) => held.includes(tuple);
}
