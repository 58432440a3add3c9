import { type ReactNode, useMemo, useState } from "react";
import { formatDuration as manifestDuration } from "../../../core/manifests/from-store/format-duration.ts";
import type { StoredNamespace } from "../../../core/manifests/from-store/stored-object.ts";
import { parseManager } from "../../../core/manifests/manager.ts";
import { type Row, useChange, useRead } from "../../api/queries.ts";
import { Button } from "../../components/button.tsx";
import { Checkbox } from "../../components/checkbox.tsx";
import { FormDialog } from "../../components/form-dialog.tsx";
import { limitText, RATES } from "../../components/limit-draft.ts";
import { ChangeFailed, lockedThere, ManagedNotice, type RequestedChange } from "../../components/managed-badge.tsx";
import { Picker } from "../../components/picker.tsx";
import { overridesOf } from "../../components/picker-sources.ts";
import { Presets } from "../../components/presets.tsx";
import { CountField, DurationField } from "../../components/quantity-field.tsx";
import { TextField } from "../../components/text-field.tsx";
import { useDone } from "../../components/toast.tsx";
import { useRequired } from "../../components/use-needs.ts";
import { YamlButton } from "../../components/yaml-view.tsx";

const HOUR_MS = 3_600_000;
const DURATION_MS_MIN = 1000;

/** Maximum length of a search text that the server accepts. */
const SEARCH_LENGTH_MAX = 256;
const NONE: readonly string[] = [];
const IDENTIFIER_HINT =
  "An exact identifier, such as acme or address=203.0.113.9, or a pattern in which each * matches any characters, such as premium_*.";

const REFRESHED = ["admin.listOverrides", "admin.explainOverride", "admin.listNamespaces"] as const;

/**
 * Creates, changes or deletes an override. A manifest-managed override is read-only; the dialog shows the change to make in the manifest.
 */
export function OverrideDialog({
  override,
  namespace,
  onClose,
}: {
  /** Override to edit; `undefined` creates a new one. */
  override: Override | undefined;
  namespace: { readonly id: string; readonly stored: StoredNamespace };
  onClose: () => void;
}): ReactNode {
  const done = useDone(onClose);
  const needs = useRequired();
  const [identifier, setIdentifier] = useState(override?.identifier ?? "");
  const [limit, setLimit] = useState<number | undefined>(override?.limit);
  const [duration, setDuration] = useState<number | undefined>(override?.duration ?? HOUR_MS);
  const [isAsync, setAsync] = useState(override?.async ?? false);
  const source = useMemo(() => overridesOf(namespace.id), [namespace.id]);
  const replaced = useReplaced(namespace.id, override === undefined ? identifier : "");
  const set = useChange("ratelimit.setOverride", { refreshes: REFRESHED });
  const remove = useChange("ratelimit.deleteOverride", { refreshes: REFRESHED });
  const wanted: readonly RequestedChange[] = [
    {
      path: ["spec"],
      value: { limit, duration: duration === undefined ? undefined : manifestDuration(duration), async: isAsync },
    },
  ];
  const manager = override?.manager;
  const locked = lockedThere(manager);
  const fault =
    locked ??
    needs("ratelimit.*.set_override") ??
    (identifier === "" ? "Enter the identifier." : undefined) ??
    (limit === undefined ? "Enter the limit." : undefined) ??
    (duration === undefined || duration < DURATION_MS_MIN ? "The window must be at least 1s." : undefined);
  const submit = (): void => {
    if (limit === undefined || duration === undefined) return;
    set.mutate(
      { namespace: namespace.id, identifier, limit, duration, async: isAsync },
      {
        onSuccess: () => done(`Override for ${identifier} saved.`),
      },
    );
  };
  return (
    <FormDialog
      title={override === undefined ? "Set an override" : override.identifier}
      action="Save"
      fault={fault}
      isBusy={set.isPending}
      error={set.error}
      doing="Setting the override"
      wanted={wanted}
      onSubmit={submit}
      onClose={onClose}
      outcome={fault === undefined ? outcomeOf({ identifier, limit, duration, isAsync }, replaced) : undefined}
      isWide={manager !== undefined}
      otherActions={
        override !== undefined && (
          <>
            <YamlButton
              object={{
                kind: "RatelimitOverride",
                namespace: namespace.stored,
                identifier: override.identifier,
                limit: override.limit,
                durationMs: override.duration,
                async: override.async,
                manager: manager === undefined ? undefined : parseManager(manager),
              }}
            />
            <Button
              kind="danger"
              isBusy={remove.isPending}
              unusable={locked ?? needs("ratelimit.*.delete_override")}
              onClick={() =>
                remove.mutate(
                  { namespace: namespace.id, identifier: override.identifier },
                  {
                    onSuccess: () => done(`Override for ${override.identifier} deleted.`),
                  },
                )
              }
            >
              Delete
            </Button>
          </>
        )
      }
    >
      {manager !== undefined && <ManagedNotice manager={manager} wanted={wanted} />}
      {override === undefined ? (
        <Picker
          label="Identifier"
          name="identifier"
          source={source}
          isSingle
          values={identifier === "" ? [] : [identifier]}
          missing={NONE}
          onChange={([chosen = ""]) => setIdentifier(chosen)}
          isRequired
          hint={IDENTIFIER_HINT}
        />
      ) : (
        <TextField
          label="Identifier"
          value={identifier}
          onChange={setIdentifier}
          isMono
          isDisabled
          hint={IDENTIFIER_HINT}
        />
      )}
      <div className="form-fields form-two">
        <CountField
          label="Limit"
          name="limit"
          value={limit}
          onChange={setLimit}
          hint="Requests per window. 0 always denies."
          isRequired
        />
        <DurationField
          label="Window"
          name="duration"
          value={duration}
          onChange={setDuration}
          hint="Such as 30s, 5m or 1h."
          isRequired
        />
        <Presets
          label="Usual limits"
          presets={RATES}
          isChosen={(rate) => rate.limit === limit && rate.duration === duration}
          onChoose={(rate) => {
            setLimit(rate.limit);
            setDuration(rate.duration);
          }}
        />
      </div>
      <Checkbox
        label="Counted in each process"
        isChecked={isAsync}
        onChange={setAsync}
        hint="Faster: counters are synchronized in the background, so processes can together admit more than the limit between two syncs."
      />
      <ChangeFailed error={remove.error} doing="Deleting the override" />
    </FormDialog>
  );
}

/** Returns the existing override that would be replaced by saving an override for this identifier. */
function useReplaced(namespace: string, identifier: string): Override | undefined {
  const search = identifier.slice(0, SEARCH_LENGTH_MAX);
  const { data } = useRead("admin.listOverrides", { namespace, search }, { enabled: identifier !== "" });
  return data?.find((one) => one.identifier === identifier);
}

interface Draft {
  readonly identifier: string;
  readonly limit: number | undefined;
  readonly duration: number | undefined;
  readonly isAsync: boolean;
}

/** Describes the effect of saving a valid draft. */
function outcomeOf({ identifier, limit = 0, duration = 0, isAsync }: Draft, replaced: Override | undefined): string {
  const whom = identifier.includes("*") ? `each identifier that matches ${identifier}` : identifier;
  const rate = `${limitText(limit, duration)}${isAsync ? ", counted in each process" : ""}`;
  const also =
    replaced === undefined ? "" : ` Replaces the override of ${limitText(replaced.limit, replaced.duration)}.`;
  return `${limit === 0 ? "Denies" : "Allows"} ${whom} ${limit === 0 ? "all requests" : rate}.${also}`;
}

/** One row of the list of overrides. */
export type Override = Row<"admin.listOverrides">;
