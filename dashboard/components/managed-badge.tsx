import { type ReactNode, useEffect, useState } from "react";
import { editCommand, parseManager } from "../../core/manifests/manager.ts";
import { ApiError } from "../api/api-error.ts";
import { Badge } from "./badge.tsx";
import { CodeBlock } from "./code-block.tsx";
import { DetailList } from "./detail-list.tsx";
import { ErrorNote } from "./error-note.tsx";
import { Notice } from "./notice.tsx";

/*
 * Components for manifest-managed objects. The operator would undo a change made in the dashboard, so these objects are shown locked, with
 * the manifest to change.
 */

/** Badge in a list row that names the manager, such as `Role shop/editor`. */
export function ManagedBadge({ manager }: { manager: string | undefined }): ReactNode {
  if (manager === undefined) return null;
  const parsed = parseManager(manager);
  const text = parsed === undefined ? manager : `${parsed.kind} ${parsed.namespace}/${parsed.name}`;
  return <Badge title={`Managed by the manifest ${manager}: change it there.`}>{text}</Badge>;
}

/** Returns the reason why a button of a managed object is disabled; `undefined` if no manifest manages the object. */
export const lockedBy = (manager: string | undefined): string | undefined =>
  manager === undefined ? undefined : `Managed by ${manager}: change its manifest.`;

/** Returns the reason why a button is disabled, for a button next to a `ManagedNotice`, which already names the manifest. */
export const lockedThere = (manager: string | undefined): string | undefined =>
  manager === undefined ? undefined : "A manifest manages this object: change it there.";

/** A change of a manifest: the path of the field, such as `["spec", "limit"]`, and its new value. */
export interface RequestedChange {
  readonly path: readonly string[];
  readonly value: unknown;
}

/** Notice that names the manifest of a locked object, how to edit it, and the fields to change. */
export function ManagedNotice({
  manager,
  wanted,
}: {
  manager: string;
  wanted?: readonly RequestedChange[];
}): ReactNode {
  const name = parseManager(manager);
  const command = name && editCommand(name);
  const snippet = useSnippet(wanted);
  return (
    <Notice kind="warn">
      <p>
        <strong>A manifest manages this object.</strong> Change it there: the operator would undo a change made here.
      </p>
      {name === undefined ? (
        <p className="mono">{manager}</p>
      ) : (
        <DetailList
          facts={[
            ["Kind", name.kind],
            ["Namespace", <code key="namespace">{name.namespace}</code>],
            ["Name", <code key="name">{name.name}</code>],
            ["Cluster", <code key="cluster">{name.cluster}</code>],
          ]}
        />
      )}
      {command !== undefined && <CodeBlock label="Edit the manifest" text={command} />}
      {snippet !== undefined && <CodeBlock label="Required changes" text={snippet} />}
    </Notice>
  );
}

/** Shows why a change failed. For a managed object it also shows the manifest and the fields to change. */
export function ChangeFailed({
  error,
  doing,
  wanted,
  isAtField,
}: {
  error: unknown;
  doing: string;
  wanted?: readonly RequestedChange[];
  /** As of `ErrorNote`. */
  isAtField?: (member: string) => boolean;
}): ReactNode {
  if (error === null || error === undefined) return null;
  const manager = managerIn(error);
  return (
    <>
      <ErrorNote error={error} doing={doing} {...(isAtField === undefined ? {} : { isAtField })} />
      {manager !== undefined && <ManagedNotice manager={manager} {...(wanted === undefined ? {} : { wanted })} />}
    </>
  );
}

/** Returns the manager in the server's error message. */
function managerIn(error: unknown): string | undefined {
  if (!(error instanceof ApiError) || error.kind !== "managed_by_manifest") return undefined;
  const [, manager = ""] = /is managed by (\S+)\. Edit/.exec(error.detail) ?? [];
  return parseManager(manager) === undefined ? undefined : manager;
}

/** Returns the requested changes as YAML. The YAML writer is loaded on first use. */
function useSnippet(wanted: readonly RequestedChange[] | undefined): string | undefined {
  const [snippet, setSnippet] = useState<string>();
  const asked = wanted === undefined || wanted.length === 0 ? undefined : JSON.stringify(wanted);
  useEffect(() => {
    if (asked === undefined) return setSnippet(undefined);
    let isDeleted = false;
    import("./manifest-writer.ts").then(
      ({ snippetOf }) => {
        const changes = JSON.parse(asked) as RequestedChange[];
        if (!isDeleted) setSnippet(changes.map(({ path, value }) => snippetOf(path, value)).join("---\n"));
      },
      // If the YAML writer cannot be loaded, the dialog still shows the name of the manifest.
      () => undefined,
    );
    return () => {
      isDeleted = true;
    };
  }, [asked]);
  return snippet;
}
