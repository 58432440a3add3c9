import { Link } from "@tanstack/react-router";
import { type ReactNode, useState } from "react";
import type { Data } from "../../../core/api/procedures.ts";
import { useChange, useRead } from "../../api/queries.ts";
import { FullTime, FullTimeOr } from "../../components/ago.tsx";
import { Button } from "../../components/button.tsx";
import { ConfirmDialog } from "../../components/confirm-dialog.tsx";
import { DetailList } from "../../components/detail-list.tsx";
import { Drawer } from "../../components/drawer.tsx";
import { formatDuration } from "../../components/duration.ts";
import { ErrorNote } from "../../components/error-note.tsx";
import { FormDialog } from "../../components/form-dialog.tsx";
import { Skeleton } from "../../components/skeleton.tsx";
import { useDone } from "../../components/toast.tsx";
import { useRequired } from "../../components/use-needs.ts";
import { usesText } from "../../components/uses.ts";
import { draftOf, IdentityFields, readDraft } from "./form.tsx";
import { KeysOfIdentity, UsageOfIdentity } from "./keys.tsx";

type Details = Data<"admin.getIdentityDetails">;

/** Polling interval of the counts, which change with every verification. */
const COUNTS_EVERY_MS = 10_000;

export function IdentityDetails({ identity, onClose }: { identity: string; onClose: () => void }): ReactNode {
  const { data, error, refetch } = useRead("admin.getIdentityDetails", { identity }, { everyMs: COUNTS_EVERY_MS });
  const needs = useRequired();
  const [doing, setDoing] = useState<"edit" | "delete">();
  return (
    <Drawer
      title={data?.identity.externalId ?? "Identity"}
      isOpen
      onClose={onClose}
      actions={
        data !== undefined && (
          <>
            <Button unusable={needs("identity.*.update_identity")} onClick={() => setDoing("edit")}>
              Change
            </Button>
            <Button kind="danger" unusable={needs("identity.*.delete_identity")} onClick={() => setDoing("delete")}>
              Delete
            </Button>
          </>
        )
      }
    >
      {error !== null && <ErrorNote error={error} doing="Reading the identity" again={() => void refetch()} />}
      {data === undefined && error === null && <Skeleton heightPx={320} hasRows />}
      {data !== undefined && (
        <>
          <DetailList
            facts={[
              ["External id", data.identity.externalId],
              ["Id", <code key="id">{data.identity.id}</code>],
              ["Created", <FullTime key="created" atMs={data.createdAt} />],
              ["Changed", <FullTimeOr key="changed" atMs={data.updatedAt} otherwise="never" />],
              ["Keys", usesText(data.keyCount, "key")],
              [
                "Changes",
                <Link key="changes" to="/audit" search={{ targetId: data.identity.id }}>
                  Audit log
                </Link>,
              ],
            ]}
          />
          <Counts details={data} />
          <section>
            <h3>Data</h3>
            {data.identity.meta === undefined ? (
              <p className="muted">None.</p>
            ) : (
              // biome-ignore lint/a11y/noNoninteractiveTabindex: a scrollable element must be reachable by keyboard.
              <pre className="meta-view" tabIndex={0}>
                {JSON.stringify(data.identity.meta, null, 2)}
              </pre>
            )}
          </section>
          <UsageOfIdentity externalId={data.identity.externalId} />
          <KeysOfIdentity externalId={data.identity.externalId} />
          {doing === "edit" && <EditIdentity details={data} onClose={() => setDoing(undefined)} />}
          {doing === "delete" && (
            <DeleteIdentity details={data} onClose={() => setDoing(undefined)} onDeleted={onClose} />
          )}
        </>
      )}
    </Drawer>
  );
}

function Counts({ details: { limits } }: { details: Details }): ReactNode {
  if (limits.length === 0) {
    return (
      <section>
        <h3>Shared limits</h3>
        <p className="muted">No shared limits: only the limits of each key apply.</p>
      </section>
    );
  }
  return (
    <section>
      <h3>Shared limits</h3>
      <table className="counts">
        <thead>
          <tr>
            <th>Limit</th>
            <th>Used now</th>
            <th>Window</th>
          </tr>
        </thead>
        <tbody>
          {limits.map(({ id, name, limit, duration, autoApply, current }) => (
            <tr key={id}>
              <td>
                {name} {!autoApply && <span className="muted">only if the request names it</span>}
              </td>
              <td>
                {current === undefined ? (
                  <span className="muted" title="Redis does not respond.">
                    unknown of {limit.toLocaleString("en")}
                  </span>
                ) : (
                  `${current.used.toLocaleString("en")} of ${limit.toLocaleString("en")}`
                )}
              </td>
              <td>{formatDuration(duration)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
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
