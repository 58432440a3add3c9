import { type ReactNode, useCallback, useEffect, useState } from "react";
import { useApi } from "../../api/api-context.ts";
import { ApiError } from "../../api/api-error.ts";
import type { Api } from "../../api/client.ts";
import { useReadAgain } from "../../api/queries.ts";
import { Button } from "../../components/button.tsx";
import { Dialog } from "../../components/dialog.tsx";
import { ErrorNote } from "../../components/error-note.tsx";
import { ChangeFailed } from "../../components/managed-badge.tsx";
import { Notice } from "../../components/notice.tsx";
import { useDone } from "../../components/toast.tsx";
import { applied, changesOf, type Meanwhile, meanwhile, type Pending, type RoleChange } from "./pending.ts";
import { SHOWN_BY } from "./shown-by.ts";
import { starText } from "./star-note.tsx";

/*
 * Shows the changes of each role before they are saved. Each role is saved with one call of `permissions.setRolePermissions`. The dialog
 * reads the roles when it opens, and saves a role only if it has not changed since. If a role has changed, the dialog shows the difference
 * and the person decides again.
 */

interface Reading {
  /** Slugs that the role currently grants; `undefined` until they are read. */
  readonly granted?: readonly string[];
  /** Changes by others since the previous read of the role. */
  readonly others?: Meanwhile;
  readonly error?: unknown;
}

export function Review({
  pending,
  onSaved,
  onClose,
}: {
  pending: Pending;
  onSaved: (roleId: string) => void;
  onClose: () => void;
}): ReactNode {
  const api = useApi();
  const readAgain = useReadAgain();
  const done = useDone(onClose);
  const [changes] = useState(() => changesOf(pending));
  const [readings, setReadings] = useState<ReadonlyMap<string, Reading>>(new Map());
  const [saved, setSaved] = useState<ReadonlySet<string>>(new Set());
  const [isSaving, setSaving] = useState(false);
  const note = useCallback(
    (roleId: string, reading: Reading): void => setReadings((before) => new Map(before).set(roleId, reading)),
    [],
  );

  useEffect(() => {
    const gone = new AbortController();
    for (const { roleId } of changes) {
      grantedBy(api, roleId, gone.signal).then(
        (granted) => note(roleId, { granted }),
        (error: unknown) => {
          if (!gone.signal.aborted) note(roleId, { error });
        },
      );
    }
    return () => gone.abort();
  }, [api, changes, note]);

  const open = changes.filter(({ roleId }) => !saved.has(roleId));
  const save = async (): Promise<void> => {
    setSaving(true);
    let isComplete = true;
    for (const change of open) {
      const { granted } = readings.get(change.roleId) ?? {};
      if (granted === undefined) {
        isComplete = false;
        continue;
      }
      const outcome = await saveRole(api, change, granted);
      if (outcome.isSaved) {
        setSaved((before) => new Set(before).add(change.roleId));
        onSaved(change.roleId);
      } else {
        isComplete = false;
        note(change.roleId, outcome.reading);
      }
    }
    readAgain(SHOWN_BY);
    setSaving(false);
    if (isComplete) {
      done(changes.length === 1 ? "Role changed." : `${changes.length} roles changed.`);
    }
  };
  const isRead = open.every(({ roleId }) => readings.get(roleId)?.granted !== undefined);
  return (
    <Dialog
      title="Review the changes"
      isOpen
      onClose={onClose}
      isWide
      actions={
        <Button
          kind="main"
          isBusy={isSaving}
          unusable={isRead ? undefined : "Some roles could not be read."}
          onClick={() => void save()}
        >
          {open.length === 1 ? "Save 1 role" : `Save ${open.length} roles`}
        </Button>
      }
    >
      {changes.map((change) => (
        <ChangesOfRole
          key={change.roleId}
          change={change}
          reading={readings.get(change.roleId)}
          isSaved={saved.has(change.roleId)}
        />
      ))}
    </Dialog>
  );
}

const grantedBy = async (api: Api, role: string, signal?: AbortSignal): Promise<readonly string[]> => {
  const { data } = await api.call("permissions.getRole", { role }, { signal });
  return (data.permissions ?? []).map(({ slug }) => slug);
};

type Outcome = { readonly isSaved: true } | { readonly isSaved: false; readonly reading: Reading };

async function saveRole(api: Api, change: RoleChange, granted: readonly string[]): Promise<Outcome> {
  const { roleId } = change;
  try {
    const permissions = applied(granted, change);
    await api.call("permissions.setRolePermissions", { roleId, permissions, expected: [...granted] });
    return { isSaved: true };
  } catch (error) {
    if (!(error instanceof ApiError) || error.kind !== "role_changed") {
      return { isSaved: false, reading: { granted, error } };
    }
    const now = await grantedBy(api, roleId).catch((cause: unknown) => cause);
    if (!Array.isArray(now)) return { isSaved: false, reading: { error: now } };
    const others = meanwhile(granted, now);
    return { isSaved: false, reading: { granted: now, ...(others === undefined ? {} : { others }) } };
  }
}

function ChangesOfRole({
  change,
  reading,
  isSaved,
}: {
  change: RoleChange;
  reading: Reading | undefined;
  isSaved: boolean;
}): ReactNode {
  const { roleName, added, removed } = change;
  const { granted, others, error } = reading ?? {};
  const has = new Set((granted ?? []).map((slug) => slug.toLowerCase()));
  const noteOf = (slug: string, isAdded: boolean): string => {
    if (granted === undefined || isSaved) return "";
    return has.has(slug.toLowerCase()) === isAdded ? " (already done by someone else)" : "";
  };
  return (
    <section className="role-changes" aria-label={`Changes of ${roleName}`}>
      <h3>
        {roleName} {isSaved && <span className="role-change-add">saved</span>}
      </h3>
      <ul>
        {added.map((slug) => (
          <li key={slug} className="role-change-add">
            + <code>{slug}</code>
            {noteOf(slug, true)} {starText(slug) !== undefined && <strong>{starText(slug)}</strong>}
          </li>
        ))}
        {removed.map((slug) => (
          <li key={slug} className="role-change-remove">
            − <code>{slug}</code>
            {noteOf(slug, false)}
          </li>
        ))}
      </ul>
      {others !== undefined && (
        <Notice kind="warn">
          <p>
            <strong>Someone else has changed this role, so your changes are not saved yet.</strong>
          </p>
          {others.added.length > 0 && <p>Granted by someone else: {others.added.join(", ")}.</p>}
          {others.removed.length > 0 && <p>Removed by someone else: {others.removed.join(", ")}.</p>}
          <p>Save again to apply your changes on top of these.</p>
        </Notice>
      )}
      {error !== undefined &&
        (granted === undefined ? (
          <ErrorNote error={error} doing={`Reading the role ${roleName}`} />
        ) : (
          <ChangeFailed
            error={error}
            doing={`Saving the role ${roleName}`}
            wanted={[{ path: ["spec", "permissions"], value: applied(granted, change) }]}
          />
        ))}
    </section>
  );
}
