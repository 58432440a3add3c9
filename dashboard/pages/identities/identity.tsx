import { createLazyRoute, getRouteApi, Link, useNavigate } from "@tanstack/react-router";
import { type ReactNode, useState } from "react";
import type { Data } from "../../../core/api/procedures.ts";
import { useChange, useForget, useRead } from "../../api/queries.ts";
import { useMay } from "../../api/session.ts";
import { FullTime, FullTimeOr } from "../../components/ago.tsx";
import { Button } from "../../components/button.tsx";
import { CodeBlock } from "../../components/code-block.tsx";
import { ConfirmDialog } from "../../components/confirm-dialog.tsx";
import { CopyButton } from "../../components/copy-button.tsx";
import { DetailList } from "../../components/detail-list.tsx";
import { formatDuration } from "../../components/duration.ts";
import { ErrorNote } from "../../components/error-note.tsx";
import { FormDialog } from "../../components/form-dialog.tsx";
import { KeyTable } from "../../components/key-table.tsx";
import { NewestKeys } from "../../components/newest-keys.tsx";
import { Page } from "../../components/page.tsx";
import { Skeleton } from "../../components/skeleton.tsx";
import { useDone } from "../../components/toast.tsx";
import { UsagePlot } from "../../components/usage-plot.tsx";
import { useRequired } from "../../components/use-needs.ts";
import { usesText } from "../../components/uses.ts";
import { draftOf, IdentityFields, readDraft } from "./form.tsx";
import "../../components/sections.css";

export const Route = createLazyRoute("/identities/$identityId")({ component: IdentityPage });
const here = getRouteApi("/identities/$identityId");

type Details = Data<"admin.getIdentityDetails">;

/** Polling interval of the counts, which change with every verification. */
const COUNTS_EVERY_MS = 10_000;

function IdentityPage(): ReactNode {
  const { identityId } = here.useParams();
  const may = useMay();
  const read = useRead("admin.getIdentityDetails", { identity: identityId }, { everyMs: COUNTS_EVERY_MS });
  const details = read.data;
  const externalId = details?.identity.externalId;
  return (
    <Page
      title={externalId ?? "Identity"}
      about={
        <>
          <Link to="/identities">All identities</Link>
          {externalId !== undefined && (
            <>
              {" · "}
              <Link to="/keys" search={{ by: "owner", q: externalId }}>
                Keys
              </Link>
              {" · "}
              <Link to="/usage" search={{ owner: externalId, range: "30d" }}>
                Usage
              </Link>
              {" · "}
              <Link to="/requests" search={{ owner: externalId, range: "7d" }}>
                Requests
              </Link>
              {" · "}
              <Link to="/audit" search={{ targetId: details?.identity.id ?? identityId }}>
                Audit log
              </Link>
            </>
          )}
        </>
      }
      actions={details !== undefined && <IdentityActions details={details} />}
    >
      {read.error !== null && (
        <ErrorNote error={read.error} doing="Reading the identity" again={() => void read.refetch()} />
      )}
      {details === undefined && read.error === null && <Skeleton heightPx={320} hasRows />}
      {details !== undefined && externalId !== undefined && (
        <div className="sections">
          {may("api.*.read_analytics") && (
            <section className="section-wide" aria-labelledby="identity-usage">
              <h2 id="identity-usage">Usage of the last 30 days</h2>
              <UsagePlot of={{ externalId }} label="Verifications of the keys of the identity by outcome" />
            </section>
          )}
          <section className="section-wide" aria-labelledby="identity-keys">
            <h2 id="identity-keys">Newest keys</h2>
            <NewestKeys of={{ externalId }} />
          </section>
          <div className="sections section-wide">
            <section aria-labelledby="identity-facts">
              <h2 id="identity-facts">Facts</h2>
              <Facts details={details} />
            </section>
            <section aria-labelledby="identity-limits">
              <h2 id="identity-limits">Shared limits</h2>
              <SharedLimits details={details} />
            </section>
          </div>
          <section className="section-wide" aria-labelledby="identity-meta">
            <h2 id="identity-meta">Meta</h2>
            {details.identity.meta === undefined ? (
              <p className="muted">None.</p>
            ) : (
              <CodeBlock label="JSON" text={JSON.stringify(details.identity.meta, null, 2)} />
            )}
          </section>
        </div>
      )}
    </Page>
  );
}

function IdentityActions({ details }: { details: Details }): ReactNode {
  const { identityId } = here.useParams();
  const navigate = useNavigate();
  const forget = useForget();
  const needs = useRequired();
  const [opened, setOpened] = useState<"edit" | "delete">();
  const close = (): void => setOpened(undefined);
  const leave = async (): Promise<void> => {
    await navigate({ to: "/identities" });
    forget("admin.getIdentityDetails", { identity: identityId });
  };
  return (
    <>
      <Button unusable={needs("identity.*.update_identity")} onClick={() => setOpened("edit")}>
        Change
      </Button>
      <Button kind="danger" unusable={needs("identity.*.delete_identity")} onClick={() => setOpened("delete")}>
        Delete
      </Button>
      {opened === "edit" && <EditIdentity details={details} onClose={close} />}
      {opened === "delete" && <DeleteIdentity details={details} onClose={close} onDeleted={() => void leave()} />}
    </>
  );
}

function Facts({ details: { identity, createdAt, updatedAt, keyCount } }: { details: Details }): ReactNode {
  return (
    <DetailList
      facts={[
        [
          "External id",
          <span key="external" className="field-row">
            <code>{identity.externalId}</code> <CopyButton text={identity.externalId} label="Copy external id" />
          </span>,
        ],
        [
          "Id",
          <span key="id" className="field-row">
            <code>{identity.id}</code> <CopyButton text={identity.id} label="Copy id" />
          </span>,
        ],
        ["Keys", usesText(keyCount, "key")],
        ["Created", <FullTime key="created" atMs={createdAt} />],
        ["Changed", <FullTimeOr key="changed" atMs={updatedAt} otherwise="never" />],
      ]}
    />
  );
}

function SharedLimits({ details: { limits } }: { details: Details }): ReactNode {
  if (limits.length === 0) return <p className="muted">No shared limits: only the limits of each key apply.</p>;
  return (
    <KeyTable label="Shared limits" heads={["Limit", "Used now", "Window"]}>
      {limits.map(({ id, name, limit, duration, autoApply, current }) => (
        <tr key={id}>
          <th scope="row">{name}</th>
          <td>
            {current === undefined ? (
              <span className="muted" title="Redis does not respond.">
                unknown of {limit.toLocaleString("en")}
              </span>
            ) : (
              `${current.used.toLocaleString("en")} of ${limit.toLocaleString("en")}`
            )}
          </td>
          <td>
            {formatDuration(duration)}
            {!autoApply && ", only if a request names it"}
          </td>
        </tr>
      ))}
    </KeyTable>
  );
}

const REFRESHED = ["identities.listIdentities", "admin.getIdentityDetails"] as const;

function EditIdentity({ details, onClose }: { details: Details; onClose: () => void }): ReactNode {
  const done = useDone(onClose);
  const { identity, limits } = details;
  const [draft, setDraft] = useState(() => draftOf({ meta: identity.meta, ratelimits: limits }));
  const update = useChange("identities.updateIdentity", { refreshes: REFRESHED });
  const read = readDraft(draft);
  const submit = (): void => {
    if ("fault" in read) return;
    update.mutate(
      { identity: identity.id, ...read },
      {
        onSuccess: () => done(`Identity ${identity.externalId} changed.`),
      },
    );
  };
  return (
    <FormDialog
      title={`Change ${identity.externalId}`}
      action="Save"
      fault={"fault" in read ? read.fault : undefined}
      isBusy={update.isPending}
      error={update.error}
      doing="Changing the identity"
      onSubmit={submit}
      onClose={onClose}
      isWide
    >
      <IdentityFields draft={draft} onChange={setDraft} />
    </FormDialog>
  );
}

function DeleteIdentity({
  details: { identity, keyCount, limits },
  onClose,
  onDeleted,
}: {
  details: Details;
  onClose: () => void;
  onDeleted: () => void;
}): ReactNode {
  const done = useDone(onDeleted);
  const remove = useChange("identities.deleteIdentity", { refreshes: ["identities.listIdentities"] });
  return (
    <ConfirmDialog
      title={`Delete ${identity.externalId}`}
      action="Delete the identity"
      onClose={onClose}
      typed={identity.externalId}
      isBusy={remove.isPending}
      error={remove.error}
      onConfirm={() =>
        remove.mutate(
          { identity: identity.id },
          {
            onSuccess: () => done(`Identity ${identity.externalId} deleted.`),
          },
        )
      }
    >
      <p>
        It has {usesText(keyCount, "key")} and {usesText(limits.length, "shared limit")}. Its keys remain valid, without
        an owner and without these limits. This cannot be undone.
      </p>
    </ConfirmDialog>
  );
}
