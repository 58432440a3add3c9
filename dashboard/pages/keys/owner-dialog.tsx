import { type FormEvent, type ReactNode, useEffect, useId, useState } from "react";
import type { Data } from "../../../core/api/procedures.ts";
import { useApi } from "../../api/api-context.ts";
import { useChange } from "../../api/queries.ts";
import { Button } from "../../components/button.tsx";
import { Dialog } from "../../components/dialog.tsx";
import { ErrorNote } from "../../components/error-note.tsx";
import { Notice } from "../../components/notice.tsx";
import { IDENTITIES } from "../../components/picker-sources.ts";
import { Select } from "../../components/select.tsx";
import { useToast } from "../../components/toast.tsx";
import { OwnerPicker } from "./key-fields.tsx";

const EXISTING = { ...IDENTITIES, isCreated: false };

type Counted = Data<"admin.disableKeysOfOwner">;

/** Counts all keys of an owner, then disables them; for use after a leak. */
export function OwnerDialog({
  apiId,
  apiName,
  owner,
  onClose,
}: {
  /** API whose keys are disabled; `undefined` selects all APIs. */
  apiId: string | undefined;
  apiName: string | undefined;
  owner: string;
  onClose: () => void;
}): ReactNode {
  const form = useId();
  const api = useApi();
  const toast = useToast();
  const [externalId, setExternalId] = useState(owner);
  const [what, setWhat] = useState<"disable" | "enable">("disable");
  const [counted, setCounted] = useState<Counted>();
  const [done, setDone] = useState(0);
  const count = useChange("admin.disableKeysOfOwner", { refreshes: [] });
  const change = useChange("admin.disableKeysOfOwner", { refreshes: ["admin.searchKeys", "admin.getKeyDetails"] });
  const body = {
    externalId: externalId.trim(),
    enabled: what === "enable",
    ...(apiId === undefined ? {} : { apiId }),
  };
  // Identifies the request whose keys were counted. The count is valid only for an equal request.
  const asked = JSON.stringify(body);
  // biome-ignore lint/correctness/useExhaustiveDependencies: a count is not valid for another request.
  useEffect(() => setCounted(undefined), [asked, api.workspace]);
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    if (body.externalId !== "" && !count.isPending) count.mutate({ ...body, dryRun: true }, { onSuccess: setCounted });
  };
  const run = (soFar: number): void =>
    change.mutate(body, {
      onSuccess: ({ changed, left }) => {
        const sum = soFar + changed;
        setDone(sum);
        // Stops if a call changed no key, because the next call would not change any key either.
        if (left > 0 && changed > 0) return run(sum);
        toast(`${sum.toLocaleString("en")} keys of ${body.externalId} ${what}d.`);
        onClose();
      },
    });
  const verb = what === "disable" ? "Disable" : "Enable";
  return (
    <Dialog
      title="All keys of an owner"
      isOpen
      onClose={onClose}
      actions={
        counted === undefined ? (
          <Button
            kind="main"
            type="submit"
            form={form}
            isBusy={count.isPending}
            unusable={body.externalId === "" ? "Enter the owner." : undefined}
          >
            Count the keys
          </Button>
        ) : (
          <Button
            kind="danger"
            isBusy={change.isPending}
            unusable={counted.changed === 0 ? "No keys to change." : undefined}
            onClick={() => run(0)}
          >
            {verb} {counted.changed.toLocaleString("en")} keys
          </Button>
        )
      }
    >
      <form id={form} className="form" onSubmit={submit}>
        <OwnerPicker
          source={EXISTING}
          externalId={externalId}
          onChange={setExternalId}
          hint={`External id. ${apiId === undefined ? "Applies to the keys of all APIs." : `Applies only to keys of the API ${apiName}.`}`}
        />
        <Select
          label="Action"
          value={what}
          options={[
            { value: "disable", label: "Disable the keys" },
            { value: "enable", label: "Enable the keys again" },
          ]}
          onChange={setWhat}
        />
      </form>
      {counted !== undefined && (
        <Notice kind={counted.changed > 0 ? "warn" : "info"}>
          <p>
            <strong>
              {counted.changed.toLocaleString("en")} keys would be {what}d
            </strong>
            , {counted.unchanged.toLocaleString("en")} already are. No keys have been changed yet.
          </p>
          {counted.managed > 0 && (
            <>
              <p>
                {counted.managed.toLocaleString("en")} keys managed by manifests do not change: change their manifests.
              </p>
              <ul>
                {counted.managedKeys.map(({ keyId, manager }) => (
                  <li key={keyId}>
                    <code>{keyId}</code> of <code>{manager}</code>
                  </li>
                ))}
              </ul>
            </>
          )}
        </Notice>
      )}
      {change.isPending && done > 0 && <p role="status">{done.toLocaleString("en")} done …</p>}
      {count.error !== null && <ErrorNote error={count.error} doing="Counting the keys" />}
      {change.error !== null && (
        <ErrorNote
          error={change.error}
          doing={`Changing the keys; ${done.toLocaleString("en")} are done. Continuing`}
          again={() => run(done)}
        />
      )}
    </Dialog>
  );
}
