import { Link } from "@tanstack/react-router";
import { type ReactNode, useState } from "react";
import { useRead } from "../../api/queries.ts";
import { Ago } from "../../components/ago.tsx";
import { Badge } from "../../components/badge.tsx";
import { browserName } from "../../components/browser-name.ts";
import { Button } from "../../components/button.tsx";
import { DetailList } from "../../components/detail-list.tsx";
import { Drawer } from "../../components/drawer.tsx";
import { ErrorNote } from "../../components/error-note.tsx";
import { KeyTable } from "../../components/key-table.tsx";
import { Skeleton } from "../../components/skeleton.tsx";
import { useRequired } from "../../components/use-needs.ts";
import { byAccountMenu, type OpenSession, type PersonDetails, roleText, signedInByText } from "./person.ts";
import { SignOutPerson } from "./sign-out-person.tsx";

/** Details of a person and their open sessions. */
export function PersonDrawer({ sessionId, onClose }: { sessionId: string; onClose: () => void }): ReactNode {
  const { data, error, refetch } = useRead("admin.getPerson", { sessionId });
  return (
    <Drawer title={data?.name ?? "Person"} isOpen onClose={onClose}>
      {error !== null && <ErrorNote error={error} doing="Reading the person" again={() => void refetch()} />}
      {data === undefined && error === null && <Skeleton heightPx={320} hasRows />}
      {data !== undefined && <Details person={data} onClose={onClose} />}
    </Drawer>
  );
}

const ELSEWHERE =
  "A session also has a role in a workspace that you do not administer. Ask an admin of all workspaces to end it.";

function Details({ person, onClose }: { person: PersonDetails; onClose: () => void }): ReactNode {
  const needs = useRequired();
  /** The session to end; `all` for all sessions of the person. */
  const [ending, setEnding] = useState<OpenSession | "all">();
  const { email, subject, groups, signedInBy, openSessions, hasMore } = person;
  const lacking = needs("workspace.*.delete_session");
  const isSelf = openSessions.some(({ isCaller }) => isCaller);
  const reasonOf = ({ isCaller, elsewhere }: Pick<OpenSession, "isCaller" | "elsewhere">): string | undefined =>
    lacking ?? (isCaller ? byAccountMenu : elsewhere ? ELSEWHERE : undefined);
  const ofAll = reasonOf({ isCaller: isSelf, elsewhere: openSessions.some(({ elsewhere }) => elsewhere) });
  return (
    <>
      <div className="field-row">
        <Button kind="danger" unusable={ofAll} onClick={() => setEnding("all")}>
          Sign out everywhere
        </Button>
        <Link to="/audit" search={{ actorId: subject }}>
          Changes by this person
        </Link>
      </div>
      <DetailList
        facts={[
          ["Role here", roleText(person)],
          ...(email === undefined ? [] : [["E-mail address", <bdi key="email">{email}</bdi>] as const]),
          ...(signedInBy === "link" ? [] : [["Id at the provider", <code key="subject">{subject}</code>] as const]),
          ["Signed in by", <bdi key="by">{signedInByText(person)}</bdi>],
          ...(groups.length === 0 ? [] : [["Groups with a role here", groups.join(", ")] as const]),
          ["Last seen", <Ago key="seen" atMs={person.lastSeenAt} />],
        ]}
      />
      <h3>Open sessions</h3>
      <div className="open-sessions">
        <KeyTable label="Open sessions" heads={["Browser", "Signed in", "Last seen", ""]}>
          {openSessions.map((session) => (
            <SessionRow
              key={session.sessionId}
              session={session}
              reason={reasonOf(session)}
              onEnd={() => setEnding(session)}
            />
          ))}
        </KeyTable>
      </div>
      {hasMore && <p className="muted">The person has more sessions. The newest 100 are shown.</p>}
      {ending !== undefined && (
        <SignOutPerson
          person={person}
          session={ending === "all" ? undefined : ending}
          onClose={() => setEnding(undefined)}
          onEnded={() => {
            setEnding(undefined);
            if (ending === "all" || openSessions.length === 1) onClose();
          }}
        />
      )}
    </>
  );
}

function SessionRow({
  session,
  reason,
  onEnd,
}: {
  session: OpenSession;
  /** Why the session cannot be ended; `undefined` if it can. */
  reason: string | undefined;
  onEnd: () => void;
}): ReactNode {
  const { isCaller, address, userAgent, createdAt, lastSeenAt } = session;
  return (
    <tr>
      <td title={userAgent}>
        {browserName(userAgent ?? null)} {isCaller && <Badge>this browser</Badge>}
        <div className="field-hint">{address ?? "unknown address"}</div>
      </td>
      <td>
        <Ago atMs={createdAt} />
      </td>
      <td>
        <Ago atMs={lastSeenAt} />
      </td>
      <td>
        <Button unusable={reason} onClick={onEnd}>
          End
        </Button>
      </td>
    </tr>
  );
}
