import { createLazyRoute, getRouteApi, useNavigate } from "@tanstack/react-router";
import { type ReactNode, useState } from "react";
import { usePages } from "../../api/queries.ts";
import { useMay, useWorkspace } from "../../api/session.ts";
import { Ago } from "../../components/ago.tsx";
import { Badge } from "../../components/badge.tsx";
import { Button } from "../../components/button.tsx";
import { EmptyState } from "../../components/empty-state.tsx";
import { Notice } from "../../components/notice.tsx";
import { Page } from "../../components/page.tsx";
import { SearchField } from "../../components/search-field.tsx";
import { type Column, Table } from "../../components/table.tsx";
import { useCreate } from "../../components/use-create.ts";
import { useRequired } from "../../components/use-needs.ts";
import { withText } from "../../search-params.ts";
import { CreateLink } from "./create-link.tsx";
import { OpenLinks } from "./open-links.tsx";
import { type Person, roleText, signedInByText } from "./person.ts";
import { PersonDrawer } from "./person-drawer.tsx";
import "./people.css";

export const Route = createLazyRoute("/people")({ component: PeoplePage });
const here = getRouteApi("/people");

const REQUIRED = "workspace.*.read_person";

function PeoplePage(): ReactNode {
  const { search, person, create } = here.useSearch();
  const navigate = useNavigate({ from: "/people" });
  const mayList = useMay()(REQUIRED);
  const needs = useRequired();
  const { session } = useWorkspace();
  const [isCreating, setIsCreating] = useState(false);
  const lacking = needs("workspace.*.create_sign_in_link");
  useCreate(create, () => setIsCreating(lacking === undefined));
  const pages = usePages("admin.listPeople", search === undefined ? {} : { search }, { enabled: mayList });
  const open = (sessionId: string, replace: boolean): void =>
    void navigate({ search: withText("person", sessionId), replace });
  const ownIds = session.sessions.map(({ id }) => id);
  return (
    <Page
      title="People"
      about="Who is signed in to the dashboard with a role in this workspace."
      actions={
        mayList && (
          <Button kind="main" unusable={lacking} onClick={() => setIsCreating(true)}>
            Create a sign-in link
          </Button>
        )
      }
    >
      {mayList ? (
        <>
          <OpenLinks />
          <SearchField
            label="Name, e-mail address or id contains"
            value={search ?? ""}
            onChange={(text) => void navigate({ search: withText("search", text), replace: true })}
          />
          <div className="people">
            <Table
              label="People"
              one="person"
              many="people"
              columns={columnsOf(ownIds)}
              pages={pages}
              rowId={({ sessionId }) => sessionId}
              onOpen={({ sessionId }) => open(sessionId, false)}
              openId={person}
              doing="Reading the people"
              empty={
                <EmptyState title={search === undefined ? "Nobody is signed in." : `No person matches “${search}”.`}>
                  <HowPeopleAppear />
                </EmptyState>
              }
            />
            {search === undefined && pages.rows.length === 1 && (
              <EmptyState title="Nobody else is signed in.">
                <HowPeopleAppear />
              </EmptyState>
            )}
          </div>
        </>
      ) : (
        <Notice>
          To see who is signed in, you need <code>{REQUIRED}</code>. Ask an admin of the workspace, who has this
          permission. The account menu shows your own sessions.
        </Notice>
      )}
      {isCreating && <CreateLink onClose={() => setIsCreating(false)} />}
      {mayList && person !== undefined && (
        <PersonDrawer key={person} sessionId={person} onClose={() => open("", true)} />
      )}
    </Page>
  );
}

const HowPeopleAppear = (): ReactNode => (
  <p className="muted people-how">
    The list has the people with an open session. They sign in with the OpenID provider, if the roles file gives one of
    their groups a role in this workspace, or with a sign-in link, which works once.
  </p>
);

// The name is isolated (`bdi`), so that control characters in it cannot change the direction of the text around it.
const columnsOf = (ownIds: readonly string[]): readonly Column<Person>[] => [
  {
    id: "name",
    header: "Name",
    width: "minmax(8rem, 2fr)",
    cell: ({ name, sessionId }) => (
      <>
        <bdi title={name}>{name}</bdi> {ownIds.includes(sessionId) && <Badge>you</Badge>}
      </>
    ),
  },
  {
    id: "email",
    header: "E-mail address",
    width: "minmax(9rem, 2fr)",
    fromPx: 900,
    cell: ({ email }) => (email === undefined ? <span className="muted">–</span> : <bdi title={email}>{email}</bdi>),
  },
  {
    id: "role",
    header: "Role",
    width: "minmax(5.5rem, 1.8fr)",
    cell: (row) => <span title={roleText(row)}>{roleText(row)}</span>,
  },
  {
    id: "by",
    header: "Signed in by",
    width: "minmax(9rem, 1.5fr)",
    fromPx: 640,
    cell: (row) => <bdi title={signedInByText(row)}>{signedInByText(row)}</bdi>,
  },
  {
    id: "groups",
    header: "Groups",
    width: "minmax(7rem, 1.2fr)",
    fromPx: 1050,
    cell: ({ groups }) =>
      groups.length === 0 ? <span className="muted">–</span> : <bdi title={groups.join("\n")}>{groups.join(", ")}</bdi>,
  },
  {
    id: "sessions",
    header: "Sessions",
    width: "5rem",
    isNumber: true,
    fromPx: 480,
    cell: ({ sessions }) => sessions.toLocaleString("en"),
  },
  { id: "seen", header: "Last seen", width: "6rem", cell: ({ lastSeenAt }) => <Ago atMs={lastSeenAt} /> },
];
