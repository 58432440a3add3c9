import { createLazyRoute, getRouteApi, Link, useNavigate } from "@tanstack/react-router";
import { type ReactNode, useState } from "react";
import { type Row, useForget, useRead } from "../../api/queries.ts";
import { useMay, useWorkspace } from "../../api/session.ts";
import { FullTime } from "../../components/ago.tsx";
import { Button } from "../../components/button.tsx";
import { CodeBlock } from "../../components/code-block.tsx";
import { CopyButton } from "../../components/copy-button.tsx";
import { DetailList } from "../../components/detail-list.tsx";
import { ErrorNote } from "../../components/error-note.tsx";
import { lockedThere, ManagedNotice } from "../../components/managed-badge.tsx";
import { Page } from "../../components/page.tsx";
import { plotSpacePx } from "../../components/plot.tsx";
import { Skeleton } from "../../components/skeleton.tsx";
import { UsagePlot } from "../../components/usage-plot.tsx";
import { useRequired } from "../../components/use-needs.ts";
import { KeysOfApi } from "./api-keys.tsx";
import { PoliciesOfApi } from "./api-policies.tsx";
import { ApiBadges } from "./badges.tsx";
import { DeleteApi } from "./delete-api.tsx";
import { RenameApi } from "./name-dialogs.tsx";
import "../../components/sections.css";

export const Route = createLazyRoute("/apis/$apiId")({ component: ApiPage });
const here = getRouteApi("/apis/$apiId");

/** Maximum number of APIs to read when searching for one by its id: names of other APIs may contain the id. */
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
      {named.data === undefined && error === null && <Skeleton heightPx={plotSpacePx()} />}
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
              <KeysOfApi apiId={apiId} />
            </section>
            <div className="sections section-wide">
              <section aria-labelledby="api-settings">
                <h2 id="api-settings">Settings</h2>
                {api !== undefined && <Settings api={api} />}
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

/** Random bytes of a new key if the API has no setting. */
const USUAL_BYTES = 16;

/** Shows the settings of an API. Only the command line changes them. */
function Settings({ api }: { api: Row<"admin.listApis"> }): ReactNode {
  const { workspace } = useWorkspace();
  const { apiId, defaultPrefix, defaultByteLength = USUAL_BYTES, ipAllowList, deleteProtection, keyEncryption } = api;
  return (
    <>
      <DetailList
        facts={[
          [
            "Id",
            <span key="id" className="field-row">
              <code>{apiId}</code> <CopyButton text={apiId} label="Copy id" />
            </span>,
          ],
          [
            "Default prefix",
            defaultPrefix === undefined ? (
              <span key="prefix" className="muted">
                none
              </span>
            ) : (
              <code key="prefix">{defaultPrefix}</code>
            ),
          ],
          ["Default length", `${defaultByteLength.toLocaleString("en")} random bytes`],
          [
            "Allowed addresses",
            ipAllowList === undefined ? (
              <span key="addresses" className="muted">
                all
              </span>
            ) : (
              <code key="addresses">{ipAllowList.join(", ")}</code>
            ),
          ],
          ["Delete protection", deleteProtection ? "on" : "off"],
          ["Recoverable keys", keyEncryption ? "allowed" : "not allowed"],
          ["Created", <FullTime key="created" atMs={api.createdAt} />],
        ]}
      />
      <p className="muted">
        An administrator changes the prefix, length, addresses, protection and recoverable keys from the command line:
      </p>
      <CodeBlock
        label="Change a setting"
        text={`postern api update --id ${apiId} --workspace ${workspace.id} --default-prefix PREFIX`}
      />
    </>
  );
}
