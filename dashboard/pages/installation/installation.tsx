import { createLazyRoute } from "@tanstack/react-router";
import type { ReactNode } from "react";
import type { Data } from "../../../core/api/procedures.ts";
import { useRead } from "../../api/queries.ts";
import { useMay } from "../../api/session.ts";
import { Ago, FullTime } from "../../components/ago.tsx";
import { Badge } from "../../components/badge.tsx";
import { DetailList } from "../../components/detail-list.tsx";
import { ErrorNote } from "../../components/error-note.tsx";
import { Notice } from "../../components/notice.tsx";
import { Page } from "../../components/page.tsx";
import { Skeleton } from "../../components/skeleton.tsx";
import { factText, isTime, labelOf, PART_TITLES } from "./facts.ts";
import "./installation.css";

export const Route = createLazyRoute("/installation")({ component: InstallationPage });

const POLL_INTERVAL_MS = 5_000;

type Part = Data<"admin.getInstallation">["parts"][number];

const KINDS = { ok: "good", warn: "warn", away: "bad", off: "plain" } as const;
const WORDS = { ok: "works", warn: "needs attention", away: "away", off: "not used" } as const;

const REQUIRED = "installation.*.read_installation";

function InstallationPage(): ReactNode {
  const mayRead = useMay()(REQUIRED);
  const { data, error, refetch, isPending, dataUpdatedAt } = useRead(
    "admin.getInstallation",
    {},
    { everyMs: POLL_INTERVAL_MS, enabled: mayRead },
  );
  const wrong = data?.parts.filter(({ state }) => state === "warn" || state === "away") ?? [];
  return (
    <Page
      title="Installation"
      about="Components in the order in which a change passes them, as seen by the api-server that responded."
    >
      {error !== null && (
        <ErrorNote error={error} doing="Reading the state of the installation" again={() => void refetch()} />
      )}
      {!mayRead && (
        <Notice>
          All workspaces share the installation. To see it, you need <code>{REQUIRED}</code>. Ask an admin of all
          workspaces, who has this permission.
        </Notice>
      )}
      {mayRead && isPending && error === null && <Skeleton heightPx={420} label="Checking each component …" />}
      {data !== undefined && (
        <>
          <p role="status">
            {wrong.length === 0
              ? "All components work."
              : `${wrong.length} of ${data.parts.length} components need attention.`}{" "}
            <span className="muted">
              Read <Ago atMs={dataUpdatedAt} />
            </span>
          </p>
          <div className="parts">
            {data.parts.map((part) => (
              <PartCard key={part.part} part={part} />
            ))}
          </div>
        </>
      )}
    </Page>
  );
}

function PartCard({ part: { part, state, problem, help, unavailableSince, facts } }: { part: Part }): ReactNode {
  const entries = Object.entries(facts);
  return (
    <section className="part" aria-label={PART_TITLES[part] ?? part}>
      <h2 className="part-head">
        {PART_TITLES[part] ?? part} <Badge kind={KINDS[state]}>{WORDS[state]}</Badge>
      </h2>
      {problem !== undefined && (
        <p>
          {problem}
          {unavailableSince !== undefined && (
            <>
              {" "}
              Unavailable since <Ago atMs={unavailableSince} />.
            </>
          )}
          {help !== undefined && (
            <>
              {" "}
              <span className="muted">
                See <code>{help}</code>.
              </span>
            </>
          )}
        </p>
      )}
      {entries.length > 0 && (
        <DetailList
          facts={entries.map(([name, value]) => [
            labelOf(name),
            isTime(name, value) ? <FullTime key={name} atMs={value} /> : factText(name, value),
          ])}
        />
      )}
    </section>
  );
}
