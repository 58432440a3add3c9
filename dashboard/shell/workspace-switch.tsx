import { useNavigate } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { useWorkspace } from "../api/session.ts";
import { Select } from "../components/select.tsx";

/** Opens the first page in the other workspace, because the objects on this page do not exist there. */
export function WorkspaceSwitch(): ReactNode {
  const { session, workspace } = useWorkspace();
  const navigate = useNavigate();
  if (session.workspaces.length === 1) return <span className="cut">{workspace.name}</span>;
  return (
    <Select
      label="Workspace"
      isLabelUnseen
      value={workspace.id}
      options={session.workspaces.map(({ id, name, enabled }) => ({
        value: id,
        label: enabled ? name : `${name} (disabled)`,
      }))}
      onChange={(id) => void navigate({ to: "/", search: { workspace: id } })}
    />
  );
}
