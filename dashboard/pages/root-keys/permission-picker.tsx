import { type ReactNode, useState } from "react";
import { useMay } from "../../api/session.ts";
import { Button } from "../../components/button.tsx";
import { Checkbox } from "../../components/checkbox.tsx";
import { Combobox, type ComboboxOption } from "../../components/combobox.tsx";
import { useFormChanged } from "../../components/form-faults.ts";
import { Notice } from "../../components/notice.tsx";
import { APIS, NAMESPACES } from "../../components/picker-sources.ts";
import { Select } from "../../components/select.tsx";
import { useChoices } from "../../components/use-options.ts";
import { actionsOf, PRESETS, RESOURCES, type ResourceType, warningsOf } from "./tuples.ts";
import "./root-keys.css";

const NOT_HELD = "You can grant only permissions that you hold.";

/**
 * Selects permissions: a resource type, an object and the actions, or a preset. The selected permissions are shown as they will be stored.
 */
export function PermissionPicker({
  permissions,
  onChange: onChosen,
}: {
  permissions: readonly string[];
  onChange: (permissions: readonly string[]) => void;
}): ReactNode {
  const may = useMay();
  const onFormChanged = useFormChanged();
  const [type, setType] = useState<ResourceType>("api");
  const [chosen, setChosen] = useState<ComboboxOption>();
  const resource = RESOURCES.find((one) => one.type === type);
  const one = resource !== undefined && "one" in resource ? resource.one : undefined;
  const isOfAll = chosen?.value === "*";
  const { options, problem, onSearch } = useChoices(type === "api" ? APIS : NAMESPACES, isOfAll ? undefined : chosen, {
    enabled: one !== undefined,
  });
  const offered = [{ value: "*", label: `All ${one}s`, note: "also those created later", isForAll: true }, ...options];
  const id = one === undefined ? "*" : (chosen?.value ?? null);
  const onChange = (next: readonly string[]): void => {
    onChosen(next);
    onFormChanged("permissions");
  };
  const set = (tuple: string, isHeld: boolean): void =>
    onChange(isHeld ? [...new Set([...permissions, tuple])] : permissions.filter((one) => one !== tuple));
  return (
    <fieldset className="picker form-wide">
      <legend>Permissions</legend>
      <div className="picker-where">
        <Select
          label="Resource"
          value={type}
          options={RESOURCES.map((one) => ({ value: one.type, label: one.label }))}
          onChange={(next) => {
            setType(next);
            setChosen(undefined);
          }}
        />
        {one !== undefined && (
          <Combobox
            label="Which"
            options={offered}
            value={chosen?.value ?? null}
            onChange={(next) => setChosen(offered.find(({ value }) => value === next))}
            onSearch={onSearch}
            problem={problem}
            placeholder={`One ${one}, or all`}
            hint={id === null ? `Choose one ${one}, or all, before the permissions.` : undefined}
          />
        )}
      </div>
      <div className="picker-actions">
        {actionsOf(type, id ?? "*").map((action) => {
          const tuple = `${type}.${id}.${action}`;
          const isAllowed = may(`${type}.*.${action}`);
          return (
            <Checkbox
              key={action}
              label={action.replaceAll("_", " ")}
              isChecked={permissions.includes(tuple)}
              unusable={isAllowed ? (id === null ? `Choose one ${one}, or all, first.` : undefined) : NOT_HELD}
              onChange={(isHeld) => set(tuple, isHeld)}
            />
          );
        })}
      </div>
      <div className="picker-presets">
        <span className="muted">Presets:</span>
        {PRESETS.map(({ label, ofApi, tuples }) => {
          const isMissing = ofApi && (type !== "api" || chosen === undefined || isOfAll);
          return (
            <Button
              key={label}
              unusable={isMissing ? "Choose the resource APIs and one of its APIs first." : undefined}
              onClick={() => onChange([...new Set(tuples(id ?? "*"))])}
            >
              {label}
            </Button>
          );
        })}
      </div>
      <div>
        <span className="label">Stored as ({permissions.length})</span>
        {permissions.length === 0 ? (
          <p className="muted">No permissions selected.</p>
        ) : (
          <ul className="tuples">
            {permissions.map((tuple) => (
              <li key={tuple}>
                <code>{tuple}</code>
                <Button kind="quiet" aria-label={`Remove ${tuple}`} onClick={() => set(tuple, false)}>
                  Remove
                </Button>
              </li>
            ))}
          </ul>
        )}
      </div>
      {warningsOf(permissions).map((warning) => (
        <Notice key={warning} kind="warn">
          {warning}
        </Notice>
      ))}
    </fieldset>
  );
}
