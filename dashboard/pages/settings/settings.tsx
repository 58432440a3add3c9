import { createLazyRoute, Link } from "@tanstack/react-router";
import { type ReactNode, useState } from "react";
import type { Data } from "../../../core/api/procedures.ts";
import { useRead } from "../../api/queries.ts";
import { useMay, useWorkspace } from "../../api/session.ts";
import { Ago } from "../../components/ago.tsx";
import { Button } from "../../components/button.tsx";
import { DetailList } from "../../components/detail-list.tsx";
import { ErrorNote } from "../../components/error-note.tsx";
import { Page } from "../../components/page.tsx";
import { Skeleton } from "../../components/skeleton.tsx";
import { AnalyticsSwitch } from "./analytics-switch.tsx";
import { type Bound, boundText, wordsOf } from "./bound.ts";
import { ChangeQueryLimits } from "./change-query-limits.tsx";
import { ChangeQuota } from "./change-quota.tsx";
import { quotaText } from "./workspace.ts";
import "./settings.css";

export const Route = createLazyRoute("/settings")({ component: SettingsPage });

function SettingsPage(): ReactNode {
  const { data, error, refetch, dataUpdatedAt } = useRead("admin.getSettings", {});
  return (
    <Page title="Settings" about="Quota and limits of usage queries of this workspace.">
      {error !== null && <ErrorNote error={error} doing="Reading the settings" again={() => void refetch()} />}
      {data === undefined && error === null && <Skeleton heightPx={320} hasRows />}
      {data !== undefined && (
        <>
          <Sections settings={data} />
          <p className="muted">
            Read <Ago atMs={dataUpdatedAt} />
          </p>
        </>
      )}
    </Page>
  );
}

type Settings = Data<"admin.getSettings">;

function Sections({ settings }: { settings: Settings }): ReactNode {
  const may = useMay();
  const mayBound = may("installation.*.update_workspace");
  const maySwitch = may("workspace.*.update_workspace");
  return (
    <div className="settings">
      <section aria-labelledby="settings-workspace">
        <h2 id="settings-workspace">This workspace</h2>
        <ThisWorkspace settings={settings} mayChange={mayBound} />
      </section>
      <section aria-labelledby="settings-analytics">
        <h2 id="settings-analytics">Usage analytics</h2>
        <AnalyticsSwitch isOn={settings.analytics} mayChange={maySwitch} />
        {!maySwitch && <WhoChanges needed="workspace.*.update_workspace" who="admins of the workspace" />}
      </section>
      <section aria-labelledby="settings-bounds">
        <h2 id="settings-bounds">Limits of usage queries</h2>
        <Bounds bounds={settings.bounds} mayChange={mayBound} />
      </section>
    </div>
  );
}

function ThisWorkspace({ settings, mayChange }: { settings: Settings; mayChange: boolean }): ReactNode {
  const { workspace } = useWorkspace();
  const [isOpen, setIsOpen] = useState(false);
  const { workspaceId, name, quotaPerMinute } = settings;
  return (
    <>
      <DetailList
        facts={[
          ["Name", <bdi key="name">{name}</bdi>],
          ["Id", <code key="id">{workspaceId}</code>],
          ["Your role", workspace.role],
          ["Quota", `${quotaText(quotaPerMinute)} (default: unlimited)`],
        ]}
      />
      <p>
        Maximum API requests per minute of all root keys and dashboard users together; further requests get 429.
        Requests to apps behind gates do not count.
      </p>
      {mayChange ? (
        <p className="field-row">
          <Button onClick={() => setIsOpen(true)}>Change the quota</Button>
          <Link to="/workspaces" search={{ search: workspaceId }}>
            Rename or disable
          </Link>
        </p>
      ) : (
        <WhoChanges needed="installation.*.update_workspace" who="admins of all workspaces" />
      )}
      {isOpen && <ChangeQuota workspace={settings} onClose={() => setIsOpen(false)} />}
    </>
  );
}

function Bounds({ bounds, mayChange }: { bounds: readonly Bound[]; mayChange: boolean }): ReactNode {
  const [isOpen, setIsOpen] = useState(false);
  return (
    <>
      <table className="bounds" aria-labelledby="settings-bounds">
        <thead>
          <tr>
            <th scope="col">Limit</th>
            <th scope="col">Value</th>
            <th scope="col">Default</th>
          </tr>
        </thead>
        <tbody>
          {bounds.map((bound) => (
            <tr key={bound.name}>
              <th scope="row">
                {wordsOf(bound).label}
                <div className="field-hint">{wordsOf(bound).about}</div>
              </th>
              <td>
                {bound.value === bound.byDefault ? (
                  boundText(bound, bound.value)
                ) : (
                  <strong>{boundText(bound, bound.value)}</strong>
                )}
              </td>
              <td>{boundText(bound, bound.byDefault)}</td>
            </tr>
          ))}
        </tbody>
      </table>
      {mayChange ? (
        <div>
          <Button onClick={() => setIsOpen(true)}>Change the limits</Button>
        </div>
      ) : (
        <WhoChanges needed="installation.*.update_workspace" who="admins of all workspaces" />
      )}
      {isOpen && <ChangeQueryLimits bounds={bounds} onClose={() => setIsOpen(false)} />}
    </>
  );
}

/** Text to show instead of a control that the person has no permission to use. */
const WhoChanges = ({ needed: required, who }: { needed: string; who: string }): ReactNode => (
  <p className="muted">
    To change the quota, you need <code>{required}</code>, which {who} hold.
  </p>
);
