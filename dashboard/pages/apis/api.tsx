import { createLazyRoute, getRouteApi, Link, useNavigate } from "@tanstack/react-router";
import { type ReactNode, useState } from "react";
import { type Row, useForget, useRead } from "../../api/queries.ts";
import { useMay } from "../../api/session.ts";
import { Button } from "../../components/button.tsx";
import { ErrorNote } from "../../components/error-note.tsx";
import { lockedThere, ManagedNotice } from "../../components/managed-badge.tsx";
import { NewestKeys } from "../../components/newest-keys.tsx";
import { Page } from "../../components/page.tsx";
import { Skeleton } from "../../components/skeleton.tsx";
import { UsagePlot } from "../../components/usage-plot.tsx";
import { useRequired } from "../../components/use-needs.ts";
import { PoliciesOfApi } from "./api-policies.tsx";
import { ApiBadges } from "./badges.tsx";
import { DeleteApi } from "./delete-api.tsx";
import { RenameApi } from "./name-dialogs.tsx";
import { ApiSettings } from "./settings.tsx";
import "../../components/sections.css";

export const Route = createLazyRoute("/apis/$apiId")({ component: ApiPage });
const here = getRouteApi("/apis/$apiId");

/**
 * Maximum number of APIs to read when searching for one by its id. More than one may match, because names of other APIs may contain the id.
 */
const FOUND_MAX = 100;

function ApiPage(): ReactNode {
  const { apiId } = here.useParams();
  const may = useMay();
  const named = useRead("apis.getApi", { apiId });
  const listed = useRead("admin.listApis", { search: apiId, limit: FOUND_MAX }, { enabled: named.data !== undefined });
  const api = listed.data?.find((one) => one.apiId === apiId);
  const error = named.error ?? listed.error;
  const again = (): void => {
    void named.refetch();
    if (named.data !== undefined) void listed.refetch();
  };
  return (
    <Page
      title={named.data?.name ?? "API"}
      about={
        <>
          <Link to="/apis">All APIs</Link>
          {" · "}
          <Link to="/keys" search={{ api: apiId }}>
            Keys
          </Link>
          {" · "}
          <Link to="/usage" search={{ api: apiId }}>
            Usage
          </Link>
          {" · "}
          <Link to="/audit" search={{ targetId: apiId }}>
            Audit log
          </Link>{" "}
          {api !== undefined && <ApiBadges api={api} />}
        </>
      }
      actions={api !== undefined && <ApiActions api={api} />}
    >
      {error !== null && <ErrorNote error={error} doing="Reading the API" again={again} />}
      {named.data === undefined && error === null && <Skeleton heightPx={320} hasRows />}
      {named.data !== undefined && (
        <>
          {api?.manager !== undefined && <ManagedNotice manager={api.manager} />}
          <div className="sections">
            {may("api.*.read_analytics") && (
              <section className="section-wide" aria-labelledby="api-usage">
                <h2 id="api-usage">Usage of the last 30 days</h2>
                <UsagePlot of={{ apiId }} label="Verifications of the API by outcome" />
              </section>
            )}
            <section className="section-wide" aria-labelledby="api-keys">
              <h2 id="api-keys">Newest keys</h2>
              <NewestKeys of={{ apiId }} />
            </section>
            <div className="sections section-wide">
              <section aria-labelledby="api-settings">
                <h2 id="api-settings">Settings</h2>
                {api !== undefined && <ApiSettings api={api} />}
              </section>
              {may("workspace.*.read_pods") && (
                <section aria-labelledby="api-policies">
                  <h2 id="api-policies">Policies</h2>
                  <PoliciesOfApi apiId={apiId} />
                </section>
              )}
            </div>
          </div>
        </>
      )}
    </Page>
  );
}

function ApiActions({ api }: { api: Row<"admin.listApis"> }): ReactNode {
  const navigate = useNavigate();
  const forget = useForget();
  const needs = useRequired();
  const [opened, setOpened] = useState<"rename" | "delete">();
  const close = (): void => setOpened(undefined);
  const leave = async (): Promise<void> => {
    await navigate({ to: "/apis" });
    forget("apis.getApi", { apiId: api.apiId });
  };
  const locked = lockedThere(api.manager);
  return (
    <>
      <Button unusable={locked ?? needs("api.*.update_api")} onClick={() => setOpened("rename")}>
        Rename
      </Button>
      <Button kind="danger" unusable={locked ?? needs("api.*.delete_api")} onClick={() => setOpened("delete")}>
        Delete
      </Button>
      {opened === "rename" && <RenameApi api={api} onClose={close} />}
      {opened === "delete" && <DeleteApi api={api} onClose={close} onDeleted={() => void leave()} />}
    </>
  );
}
